//! How does one run the simulated cloud alone? `cloud [--fast] [--seed N]`, until stdin closes.
//!
//! Prints one line of JSON with `ec2Endpoint`, `ec2EndpointTls`, `ec2CaFile` and `cloudAdmin`.

use anyhow::{Context, bail};
use machinist_testbed::{
    cloud::{CloudConfig, ServeOptions, TlsPem, serve},
    pki::Authority,
};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = read_arguments(std::env::args().skip(1))?;
    let authority = Authority::new("machinist-cloud").context("making the authority")?;
    let identity =
        authority.server("ec2", &["localhost", "127.0.0.1"]).context("making the certificate")?;
    let folder = tempfile::tempdir().context("making a folder for the authority's certificate")?;
    let authority_file = folder.path().join("ca.crt");
    std::fs::write(&authority_file, authority.certificate())
        .with_context(|| format!("writing {}", authority_file.display()))?;

    let tls = TlsPem { certificate_chain: identity.certificate, private_key: identity.key };
    let mut server = serve(options, Some(tls)).await?;
    println!(
        "{}",
        serde_json::json!({
            "ec2Endpoint": server.ec2_url(),
            "ec2EndpointTls": server.ec2_tls_url(),
            "ec2CaFile": authority_file,
            "cloudAdmin": server.admin_url(),
        })
    );

    let mut terminated = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::select! {
        biased;
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        () = stdin_closed() => Ok(()),
        error = server.failed() => Err(error),
    }?;
    // The runtime would wait for the thread that still reads stdin.
    drop(server);
    drop(folder);
    std::process::exit(0)
}

fn read_arguments(arguments: impl Iterator<Item = String>) -> anyhow::Result<ServeOptions> {
    let mut options = ServeOptions::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--fast" => options.cloud = CloudConfig::fast(),
            "--seed" => {
                let seed = arguments.next().context("--seed needs a number")?;
                options.seed = seed.parse().with_context(|| format!("--seed {seed}"))?;
            }
            other => bail!("unknown argument {other}; there are --fast and --seed N"),
        }
    }
    Ok(options)
}

async fn stdin_closed() {
    let read = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    tokio::task::spawn_blocking(read).await.ok();
}
