//! What does a newcomer read when the cluster is there? Where it is, and three experiments to try.

use std::path::Path;

use clap::builder::styling::Style;
use machinist_testbed::Cluster;

use super::manifests::{WORKLOAD, WORKLOAD_NAMESPACE, worker_pool_name};
use crate::args::UpArgs;
use crate::screen::{self, wrapped};
use crate::state_file::UpState;

/// What the text names.
#[derive(Clone, Debug)]
pub struct Facts {
    pub pool: String,
    pub workers: u16,
    pub has_operator: bool,
    pub is_background: bool,
    pub has_kubectl: bool,
    /// How this program is called in a shell.
    pub machinist: String,
    /// How long a line of text may be.
    pub width: usize,
}

impl Facts {
    pub fn gather(cluster: &Cluster, args: &UpArgs) -> Self {
        Self {
            pool: worker_pool_name(&cluster.cloud().world()).unwrap_or_default(),
            workers: args.workers,
            has_operator: !args.no_operator,
            is_background: args.background,
            has_kubectl: is_on_path("kubectl"),
            machinist: own_name(),
            width: screen::width().unwrap_or(screen::USUAL_WIDTH),
        }
    }
}

/// `machinist` where a shell finds it, else the way to it.
pub fn own_name() -> String {
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
        lines.extend(page(state));
        lines.extend(experiments(facts, state.page.is_some()));
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

/// Where the fleet can be looked at. The token is in the part of the address that a browser sends nobody.
fn page(state: &UpState) -> Vec<String> {
    let Some(page) = &state.page else { return Vec::new() };
    let heading = Style::new().bold();
    let address = match &state.page_token {
        Some(token) => format!("{page}#token={token}"),
        None => page.clone(),
    };
    vec![
        format!("{heading}The page{heading:#}, for a browser on this machine:"),
        String::new(),
        format!("  {address}"),
        String::new(),
    ]
}

fn experiments(facts: &Facts, has_page: bool) -> Vec<String> {
    let heading = Style::new().bold();
    let Facts { machinist, pool, workers, .. } = facts;
    let mut lines =
        vec![format!("{heading}Three experiments{heading:#}, each one command in this folder:")];
    if *workers > 0 {
        for (command, what, watch) in [
            (
                "up stop-instance",
                "stops the instance of a worker behind the cluster's back",
                "Fleet: a square turns; Drift: who did it, and what is done",
            ),
            (
                "up retire-instance",
                "lets the provider announce that it retires the host of a worker",
                "Plan: a bar appears, and what it waits for",
            ),
            (
                "up break-zone",
                "lets a whole zone fail; `up mend-zone` undoes it",
                "Fleet: the zone turns, and nothing is deleted",
            ),
        ] {
            lines.extend([
                String::new(),
                format!("  {machinist} {command}"),
                format!("      {what}."),
            ]);
            let also = if has_page { format!(", and on the page {watch}") } else { String::new() };
            let watch = format!("Watch `{machinist} status --watch`{also}.");
            lines.extend(wrapped("      ", &watch, facts.width));
        }
    }
    let more = u32::from(*workers) + 3;
    lines.extend([
        String::new(),
        "And: scale up, and watch machines, instances and nodes appear:".to_owned(),
        format!("  kubectl scale machineset {pool} --replicas={more}"),
        "Forbid a disruption, delete a machine, read what it waits for, allow it again:".to_owned(),
        format!("  {}", patch_budget(0)),
        "  kubectl delete machine --wait=false MACHINE   # one whose node runs a pod of it"
            .to_owned(),
        format!("  {machinist} status"),
        format!("  {}", patch_budget(1)),
        format!("Is anything wrong with the installation? {machinist} doctor"),
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
    use crate::testing::golden;

    fn state(page: Option<&str>) -> UpState {
        UpState {
            page: page.map(str::to_owned),
            page_token: page.map(|_| "secret".to_owned()),
            ..UpState::sample()
        }
    }

    fn facts() -> Facts {
        Facts {
            pool: "demo-worker-a".to_owned(),
            workers: 3,
            has_operator: true,
            is_background: false,
            has_kubectl: true,
            machinist: "machinist".to_owned(),
            width: 80,
        }
    }

    #[test]
    fn the_tour_names_the_page_and_three_experiments_of_one_command_each() {
        let text = text(&state(Some("http://127.0.0.1:4/")), &facts());
        for words in [
            "http://127.0.0.1:4/#token=secret",
            "  machinist up stop-instance\n",
            "  machinist up retire-instance\n",
            "  machinist up break-zone\n",
            "--replicas=6",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        golden("../up/welcome.txt", &(text + "\n"));
    }

    #[test]
    fn without_a_page_or_an_operator_nothing_is_promised() {
        let pageless = text(&state(None), &facts());
        assert!(!pageless.contains("#token") && !pageless.contains("on the page"), "{pageless}");
        let without = Facts { has_operator: false, ..facts() };
        let text = text(&state(None), &without);
        golden("../up/welcome-without-operator.txt", &format!("{text}\n"));
        assert!(!text.contains("stop-instance") && text.contains("No operator runs"), "{text}");
    }

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(quoted(Path::new("/home/me/.machinist/up.json")), "/home/me/.machinist/up.json");
        assert_eq!(quoted(Path::new("/my files/it's")), r"'/my files/it'\''s'");
    }
}
