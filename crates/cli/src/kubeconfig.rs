//! Which cluster is meant, and what does one say when it cannot be reached?

use std::fmt;
use std::path::{Path, PathBuf};

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::ClusterArgs;
use crate::failure::Hinted;
use crate::reader::OnlyReads;
use crate::state_file::{FILE, FOLDER, UpState};

const HINT_OTHER_CLUSTER: &str = "choose a cluster with --kubeconfig and --context, or start one \
                                  here with `machinist up`";

/// A connection, and where its address came from.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub source: Source,
    server: String,
}

/// Where the kubeconfig came from, in the order in which the places are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag(PathBuf),
    Environment,
    /// The cluster that `machinist up` started in the current folder.
    Up(PathBuf),
    /// `~/.kube/config`, else the service account of the pod that this runs in.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(_) => formatter.write_str("--kubeconfig"),
            Self::Environment => formatter.write_str("KUBECONFIG"),
            Self::Up(_) => write!(formatter, "{FOLDER}/{FILE}"),
            Self::Default => formatter.write_str("the default (~/.kube/config)"),
        }
    }
}

/// What a command may do to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Requests that are no GET and no access review are refused before they are sent.
    Read,
    Write,
}

/// Connects as the arguments say. No request is made yet.
pub async fn connect(args: &ClusterArgs, access: Access) -> anyhow::Result<Connection> {
    let source = choose_source(args, Path::new(FOLDER))?;
    let options =
        KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match read(&source, &options).await {
        Ok(config) => config,
        Err(error) => {
            let what = format!("cannot read the kubeconfig that {source} names");
            // As text: the error repeats its causes in its own words.
            return Err(Hinted::new(what, HINT_OTHER_CLUSTER).caused_by(error.to_string()).into());
        }
    };
    let server = config.cluster_url.to_string();
    let client = match access {
        Access::Read => ClientBuilder::try_from(config)?.with_layer(&OnlyReads).build(),
        Access::Write => Client::try_from(config)?,
    };
    Ok(Connection { client, source, server })
}

async fn read(
    source: &Source,
    options: &KubeConfigOptions,
) -> Result<Config, Box<dyn std::error::Error + Send + Sync>> {
    let config = match source {
        Source::Flag(path) | Source::Up(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, options).await?
        }
        Source::Environment => Config::from_kubeconfig(options).await?,
        Source::Default => match Config::from_kubeconfig(options).await {
            Ok(config) => config,
            // In a pod there is a service account and no kubeconfig.
            Err(error) => match Config::incluster() {
                Ok(config) if options.context.is_none() => config,
                Ok(_) | Err(_) => return Err(error.into()),
            },
        },
    };
    Ok(config)
}

fn choose_source(args: &ClusterArgs, up_folder: &Path) -> anyhow::Result<Source> {
    if let Some(path) = &args.kubeconfig {
        return Ok(Source::Flag(path.clone()));
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty()) {
        return Ok(Source::Environment);
    }
    Ok(match UpState::read(up_folder)? {
        Some(state) => Source::Up(state.kubeconfig),
        None => Source::Default,
    })
}

impl Connection {
    /// A connection to whatever a test answers with.
    #[cfg(test)]
    pub fn to(client: Client) -> Self {
        Self { client, source: Source::Default, server: "https://test".to_owned() }
    }

    /// Turns a failed request into words and advice.
    pub fn explain(&self, attempt: &str, error: kube::Error) -> anyhow::Error {
        let Self { source, server, .. } = self;
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Hinted::new(
                    format!("{server} knows no machine.openshift.io/v1beta1 (named by {source})"),
                    "is Machinist installed there? its definitions are in deploy/crds; `machinist \
                     up` starts a cluster that has them",
                )
                .into(),
                401 => Hinted::new(
                    format!("{server} does not accept the credentials of {source}"),
                    "they may have expired; log in again or choose others with --context",
                )
                .into(),
                _ => anyhow::anyhow!("{attempt}: {}", status.message),
            },
            other => {
                let hint = match source {
                    Source::Up(_) => {
                        "the cluster of `machinist up` seems to be gone; `machinist down` removes \
                         what is left of it and `machinist up` starts another"
                    }
                    Source::Flag(_) | Source::Environment | Source::Default => HINT_OTHER_CLUSTER,
                };
                let what = format!("cannot reach the API server {server} (named by {source})");
                Hinted::new(what, hint).caused_by(root_cause(&other)).into()
            }
        }
    }
}

/// The innermost cause: what wraps it only says "error" in other words.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
