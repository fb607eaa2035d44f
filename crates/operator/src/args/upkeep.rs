//! The flags of what the operator keeps for itself in the cluster.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;

#[derive(Clone, Debug, Args)]
pub struct UpkeepArgs {
    /// The release that is reported to OpenShift, and whose feature gates count.
    #[arg(long, env = "RELEASE_VERSION", value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub release_version: String,

    /// Keeps the two webhook configurations `machine-api`: `service` has the API server ask the
    /// Service machine-api-operator-webhook, `url:https://HOST:PORT` has it ask there, `off` leaves
    /// them alone.
    #[arg(long, value_name = "HOW", default_value = "off")]
    pub keep_webhooks: KeepWebhooks,

    /// Certificate of cert-manager, `NAMESPACE/NAME`, from which the CA bundle of the webhooks is
    /// injected; by default OpenShift's service-ca injects it, or this process sets its own.
    #[arg(long, value_name = "CERTIFICATE")]
    pub webhook_ca_from: Option<String>,

    /// Image of the DaemonSet machine-api-termination-handler, which is kept together with the
    /// MachineHealthCheck of that name; `off` leaves both alone. By default the image that
    /// --images-json names, or off without it.
    #[arg(long, value_name = "IMAGE")]
    pub termination_handler_image: Option<String>,

    /// Where the kubelet's kubeconfig is on the machines, for the termination handlers. By default
    /// /var/lib/kubelet/kubeconfig on OpenShift and /etc/kubernetes/kubelet.conf elsewhere. The
    /// certificates that it names must be under /var/lib/kubelet/pki.
    #[arg(long, value_name = "FILE", value_parser = absolute_path)]
    pub termination_handler_kubeconfig: Option<String>,

    /// File with the images of the release, as in the ConfigMap machine-api-operator-images.
    #[arg(long, value_name = "FILE")]
    pub images_json: Option<PathBuf>,
}

/// A path that can be mounted into a pod.
fn absolute_path(text: &str) -> Result<String, String> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(':');
    match text.strip_prefix('/') {
        Some(rest) if rest.split('/').all(is_plain) => Ok(text.to_owned()),
        _ => Err("expected an absolute path without . and .. and colons".to_owned()),
    }
}

/// Whether and how the webhook configurations are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepWebhooks {
    Off,
    Service,
    /// `https://host:port`.
    Url(String),
}

impl FromStr for KeepWebhooks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "service" => Ok(Self::Service),
            _ => match text.strip_prefix("url:") {
                Some(url) if url.starts_with("https://") => Ok(Self::Url(url.to_owned())),
                _ => Err("expected off, service or url:https://HOST:PORT".to_owned()),
            },
        }
    }
}

/// The image list; the key of the operator's own image is the original's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Images {
    #[serde(rename = "machineAPIOperator", default)]
    operator: String,
}

impl UpkeepArgs {
    /// Whether termination handlers are kept at all.
    pub fn keeps_termination_handlers(&self) -> bool {
        match self.termination_handler_image.as_deref() {
            Some("off") => false,
            Some(_) => true,
            None => self.images_json.is_some(),
        }
    }

    /// The image of the termination handlers, if they are kept. The list is read anew each time: it
    /// is a mounted ConfigMap.
    pub fn termination_handler_image(&self) -> anyhow::Result<Option<String>> {
        match (self.termination_handler_image.as_deref(), &self.images_json) {
            (Some("off"), _) | (None, None) => Ok(None),
            (Some(image), _) => Ok(Some(image.to_owned())),
            (None, Some(path)) => {
                let of_file = || format!("the images of {}", path.display());
                let text = fs::read(path).with_context(of_file)?;
                let images: Images = serde_json::from_slice(&text).with_context(of_file)?;
                anyhow::ensure!(
                    !images.operator.is_empty(),
                    "{}: machineAPIOperator is empty",
                    of_file()
                );
                Ok(Some(images.operator))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        upkeep: UpkeepArgs,
    }

    fn parse(flags: &[&str]) -> Result<UpkeepArgs, clap::Error> {
        Whole::try_parse_from([&["operator"], flags].concat()).map(|whole| whole.upkeep)
    }

    #[test]
    fn webhooks_are_kept_as_told() {
        let of = |flags: &[&str]| parse(flags).map(|args| args.keep_webhooks).ok();
        assert_eq!(of(&[]), Some(KeepWebhooks::Off));
        assert_eq!(of(&["--keep-webhooks=service"]), Some(KeepWebhooks::Service));
        let url = "https://127.0.0.1:9443".to_owned();
        let flag = format!("--keep-webhooks=url:{url}");
        assert_eq!(of(&[&flag]), Some(KeepWebhooks::Url(url)));
        assert_eq!(of(&["--keep-webhooks=url:http://127.0.0.1"]), None);
        assert_eq!(of(&["--keep-webhooks=yes"]), None);
    }

    #[test]
    fn the_kubeconfig_of_kubelets_is_an_absolute_path() {
        let of = |path: &str| {
            let flag = format!("--termination-handler-kubeconfig={path}");
            parse(&[&flag]).map(|args| args.termination_handler_kubeconfig).ok().flatten()
        };
        assert_eq!(of("/etc/kubelet.conf").as_deref(), Some("/etc/kubelet.conf"));
        for bad in ["", "/", "kubelet.conf", "/a/../b", "/a//b", "/a:b"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_image_is_the_flags_or_the_lists() {
        let directory =
            std::env::temp_dir().join(format!("machinist-images-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            format!("--images-json={}", path.display())
        };
        let good = file("good", r#"{ "machineAPIOperator": "image-1", "kubeRBACProxy": "p" }"#);
        let empty = file("empty", r#"{ "machineAPIOperator": "" }"#);
        let bad = file("bad", "no json");
        let of = |flags: &[&str]| parse(flags).unwrap().termination_handler_image();
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[&good]).unwrap().as_deref(), Some("image-1"));
        let own = "--termination-handler-image=own";
        assert_eq!(of(&[&good, own]).unwrap().as_deref(), Some("own"));
        assert_eq!(of(&[&good, "--termination-handler-image=off"]).unwrap(), None);
        let error = of(&[&empty]).unwrap_err();
        assert!(format!("{error:#}").contains("machineAPIOperator is empty"), "{error:#}");
        of(&[&bad]).unwrap_err();
        of(&["--images-json=/does/not/exist"]).unwrap_err();
        fs::remove_dir_all(&directory).unwrap();
    }
}
