//! How does one run the simulated cloud alone?

use anyhow::Context;
use machinist_testbed::cloud::{CloudConfig, ServeOptions, TlsPem, serve};
use machinist_testbed::pki::Authority;
use serde_json::json;

use crate::args::CloudArgs;
use crate::shutdown::Shutdown;

pub async fn run(args: CloudArgs) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let authority = Authority::new("machinist-cloud").context("cannot make an authority")?;
    let identity = authority
        .server("ec2", &["localhost", "127.0.0.1"])
        .context("cannot make the endpoint's certificate")?;
    let folder = tempfile::Builder::new()
        .prefix("machinist-cloud-")
        .tempdir()
        .context("cannot create a temporary folder")?;
    let authority_file = folder.path().join("ca.crt");
    std::fs::write(&authority_file, authority.certificate())
        .with_context(|| format!("cannot write {}", authority_file.display()))?;

    let cloud = if args.fast { CloudConfig::fast() } else { CloudConfig::default() };
    let options = ServeOptions { cloud, seed: args.seed, ..ServeOptions::default() };
    let tls = TlsPem { certificate_chain: identity.certificate, private_key: identity.key };
    let mut server = serve(options, Some(tls)).await?;
    println!(
        "{}",
        json!({
            "ec2Endpoint": server.ec2_url(),
            "ec2EndpointTls": server.ec2_tls_url(),
            "ec2CaFile": authority_file,
            "cloudAdmin": server.admin_url(),
        })
    );
    tokio::select! {
        biased;
        () = shutdown.requested() => {}
        () = stdin_closed(), if args.until_stdin_closes => {}
        error = server.failed() => return Err(error),
    }
    drop(server);
    folder.close().context("cannot remove the temporary folder")?;
    // The runtime would wait for the thread that still reads standard input.
    std::process::exit(0)
}

async fn stdin_closed() {
    let read = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    tokio::task::spawn_blocking(read).await.ok();
}
