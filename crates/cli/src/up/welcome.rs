//! What does a newcomer read when the cluster is there? Where it is, and three things to try.

use std::path::Path;

use clap::builder::styling::Style;
use jiff::{SignedDuration, Timestamp};
use machinist_testbed::Cluster;
use machinist_testbed::cloud::CloudHandle;

use super::manifests::{WORKLOAD, WORKLOAD_NAMESPACE, worker_pool_name};
use crate::args::UpArgs;
use crate::state_file::UpState;

/// How far ahead the retirement to try is: near enough to see it happen.
const RETIREMENT_IN: SignedDuration = SignedDuration::from_mins(2);

/// What the text names.
#[derive(Clone, Debug)]
pub struct Facts {
    pub pool: String,
    pub workers: u16,
    /// Two instances of workers, where there are two.
    pub instances: Vec<String>,
    pub has_operator: bool,
    pub is_background: bool,
    pub has_kubectl: bool,
    /// How this program is called in a shell.
    pub machinist: String,
    pub now: Timestamp,
}

impl Facts {
    pub fn gather(cluster: &Cluster, args: &UpArgs) -> Self {
        Self {
            pool: worker_pool_name(&cluster.cloud().world()).unwrap_or_default(),
            workers: args.workers,
            instances: worker_instances(cluster.cloud()),
            has_operator: !args.no_operator,
            is_background: args.background,
            has_kubectl: is_on_path("kubectl"),
            machinist: own_name(),
            now: Timestamp::now(),
        }
    }
}

fn worker_instances(cloud: &CloudHandle) -> Vec<String> {
    let is_worker = |name: &String| name.contains("-worker-");
    let workers = cloud
        .snapshot()
        .into_iter()
        .filter(|instance| instance.is_up() && instance.tags.get("Name").is_some_and(is_worker));
    workers.map(|instance| instance.id).take(2).collect()
}

/// `machinist` where a shell finds it, else the way to it.
fn own_name() -> String {
    let name = "machinist".to_owned();
    let this = std::env::current_exe().ok().filter(|_| !is_on_path(&name));
    let Some(this) = this else { return name };
    let here = std::env::current_dir().unwrap_or_default();
    quoted(this.strip_prefix(here).unwrap_or(&this))
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

pub fn text(state: &UpState, facts: &Facts) -> String {
    let heading = Style::new().bold();
    let mut lines = vec![
        String::new(),
        format!("{heading}The cluster is up.{heading:#} In another terminal:"),
        String::new(),
        format!("  export KUBECONFIG={}", quoted(&state.kubeconfig)),
    ];
    if !facts.has_kubectl {
        lines.push(format!("  alias kubectl={}", quoted(&state.kubectl)));
    }
    lines.push("  kubectl get machines,nodes".to_owned());
    lines.push(format!("  {} status --watch", facts.machinist));
    lines.push(String::new());
    if facts.has_operator {
        lines.extend(things_to_try(state, facts));
    } else {
        lines.extend(without_operator(state));
    }
    lines.push(String::new());
    lines.push(format!("Everything is described in {}, logs are in", quoted(&state_file(state))));
    lines.push(format!("{}.", state.logs.display()));
    lines.push(if facts.is_background {
        format!("It runs in the background; to remove it: {} down", facts.machinist)
    } else {
        "Ctrl-C here removes all of it.".to_owned()
    });
    lines.join("\n")
}

fn things_to_try(state: &UpState, facts: &Facts) -> Vec<String> {
    let heading = Style::new().bold();
    let admin = &state.cloud_admin;
    let mut lines = vec![format!("{heading}Three things to try{heading:#}")];
    let stopped = facts.instances.first();
    let retired = facts.instances.get(1).or(stopped);
    if let (Some(stopped), Some(retired)) = (stopped, retired) {
        let when = facts.now.checked_add(RETIREMENT_IN).unwrap_or(facts.now);
        let when = Timestamp::from_second(when.as_second()).unwrap_or(when);
        let event = format!(
            r#"{{"instanceId":"{retired}","code":"instance-retirement","notBefore":"{when}"}}"#
        );
        lines.extend([
            "  Stop an instance behind the cluster's back (Machinist says so, and starts it half a minute later):".to_owned(),
            format!("    curl -X POST {admin}/instances/{stopped}/stop"),
            "  Let the provider announce that it retires a host (it stops the instance then):"
                .to_owned(),
            format!("    curl -X POST {admin}/events -d '{event}'"),
        ]);
    }
    let more = u32::from(facts.workers) + 3;
    let pool = &facts.pool;
    lines.extend([
        "  Scale up, and watch machines, instances and nodes appear:".to_owned(),
        format!("    kubectl scale machineset {pool} --replicas={more}"),
        "  And: forbid a disruption, delete a machine, read what it waits for, allow it again:"
            .to_owned(),
        format!("    {}", patch_budget(0)),
        "    kubectl delete machine --wait=false MACHINE   # one whose node runs a pod of it"
            .to_owned(),
        format!("    {} status", facts.machinist),
        format!("    {}", patch_budget(1)),
    ]);
    lines
}

fn patch_budget(max_unavailable: u8) -> String {
    format!(
        "kubectl -n {WORKLOAD_NAMESPACE} patch pdb {WORKLOAD} --type=merge \
         -p '{{\"spec\":{{\"maxUnavailable\":{max_unavailable}}}}}'"
    )
}

fn without_operator(state: &UpState) -> Vec<String> {
    vec![
        "No operator runs, so the machines stay as they are. To run one:".to_owned(),
        format!("  machinist-operator --kubeconfig={}", quoted(&state.operator_kubeconfig)),
        format!("EC2 answers at {} and {}", state.ec2_endpoint_tls, state.ec2_endpoint),
        format!("(certificate authority: {}),", state.ec2_ca_file.display()),
        format!("the cloud's console at {}.", state.cloud_admin),
    ]
}

fn state_file(state: &UpState) -> std::path::PathBuf {
    state.kubeconfig.with_file_name(crate::state_file::FILE)
}

/// For a shell: quoted where it has to be.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|one| one.is_ascii_alphanumeric() || "/._-+@%".contains(one));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(quoted(Path::new("/home/me/.machinist/up.json")), "/home/me/.machinist/up.json");
        assert_eq!(quoted(Path::new("/my files/it's")), r"'/my files/it'\''s'");
    }
}
