//! The flags of the page.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args};

/// The flags of the page.
#[derive(Args, Clone, Debug, Default)]
pub struct PageArgs {
    /// Address of the page and its API, over TLS; port 0 takes a free one. Without it there is none.
    #[arg(long, value_name = "ADDRESS")]
    pub page_address: Option<SocketAddr>,

    /// File to which the bound address is written, once it is.
    #[arg(long, value_name = "FILE")]
    pub page_address_file: Option<PathBuf>,

    /// Folder with tls.crt and tls.key for --page-address, by default the webhooks' certificate.
    #[arg(long, value_name = "FOLDER")]
    pub page_cert_dir: Option<PathBuf>,

    /// Serves the page without TLS, on an address of this host only: tokens would be readable on the way.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub page_plain_http: bool,

    /// Lets people approve, pause and postpone on the page, each with their own rights.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub page_writes: bool,

    /// Another origin that changes may come from, such as that of a proxy in front. May be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub page_origin: Vec<String>,
}

impl PageArgs {
    /// # Errors
    /// Fails when tokens would travel in the open.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_local = self.page_address.is_none_or(|address| address.ip().is_loopback());
        anyhow::ensure!(
            !self.page_plain_http || is_local,
            "--page-plain-http: --page-address must be an address of this host, such as 127.0.0.1:8444"
        );
        Ok(())
    }
}
