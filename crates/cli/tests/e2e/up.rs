//! Does `machinist up` hold what it promises a newcomer: a cluster, a page with a token, experiments, and an end
//! that leaves nothing? The commands are run as they are printed, in a folder of their own.

use std::{
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use http::Method;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use machinist_api::MaintenancePolicy;
use machinist_testbed::operator_process::find_program;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use crate::{arena::run, page::Page};

/// For each thing that is waited for; the cores may be busy with something else.
const PATIENCE: Duration = Duration::from_secs(300);

/// A folder in which a cluster is, until this is dropped.
struct Tour {
    folder: tempfile::TempDir,
}

impl Drop for Tour {
    fn drop(&mut self) {
        // Where the test failed: nothing may stay behind.
        let mut down = std::process::Command::new(program());
        down.arg("down").current_dir(self.folder.path()).stdout(Stdio::null()).status().ok();
    }
}

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_machinist").into()
}

impl Tour {
    async fn try_run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("KUBECONFIG").env("MACHINIST_OPERATOR", find_program().unwrap());
        command.output().await.unwrap()
    }

    /// What a command that succeeds prints.
    async fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\u{1b}'), "{words:?}: colours outside of a terminal: {text}");
        text
    }

    async fn document(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[words, &["-o", "json"]].concat()).await).unwrap()
    }

    fn state(&self) -> Value {
        let file = self.folder.path().join(".machinist/up.json");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }
}

async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(200)).await;
    }
}

fn machines_in(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(|one| one["machine"].as_str()).collect()
}

#[test]
fn a_newcomer_gets_a_cluster_a_page_and_experiments_and_nothing_stays_behind() {
    run(async {
        let tour = Tour { folder: tempfile::tempdir().unwrap() };
        let up = ["up", "--detach", "--fast", "--workers=3", "--control-plane=1"];
        let welcome = tour.run(&up).await;
        let state = tour.state();
        let (address, token) =
            (state["page"].as_str().unwrap(), state["pageToken"].as_str().unwrap());
        assert!(welcome.contains(&format!("{address}#token={token}")), "{welcome}");
        for experiment in ["up stop-instance", "up retire-instance", "up break-zone"] {
            assert!(welcome.contains(experiment), "{welcome}");
        }
        assert_eq!(tour.try_run(&up).await.status.code(), Some(1), "there is one already");

        let page = Page::at(address);
        assert_eq!(page.ask(Method::GET, "fleet", None, None).await.unwrap_err(), 401);
        let me = page.get("me", token).await.unwrap();
        let may = me["may"].as_object().unwrap();
        assert!(may.values().all(|may| *may == true), "{me:#}");
        let all_well = async || {
            let fleet = page.get("fleet", token).await.ok()?;
            (fleet["counts"]["byState"]["well"] == 4 && fleet["drift"] == 0).then_some(())
        };
        eventually("the page shows four machines that are well", &all_well).await;
        let status = tour.document(&["status"]).await;
        assert_eq!(status["summary"]["machines"], 4, "{status:#}");

        // Somebody stops an instance; it is told as long as it is so, and afterwards that it was.
        let told = tour.run(&["up", "stop-instance"]).await;
        let stopped = victim(&told, &status);
        assert!(told.contains(&format!("{address}machines/{stopped}")), "{told}");
        eventually("the stop is over, and told of", async || {
            let drift = page.get("drift", token).await.ok()?;
            machines_in(&drift["past"]).contains(&stopped.as_str()).then_some(())
        })
        .await;
        let incidents = tour.document(&["drift", &stopped]).await;
        assert_eq!(incidents["incidents"][0]["class"], "StoppedByUser", "{incidents:#}");
        eventually("everything is well again", &all_well).await;

        // The provider announces a retirement, and a person approves the replacement on the page.
        let policies = Api::<MaintenancePolicy>::all(admin(&state).await);
        let careful = json!({
            "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
            "metadata": {"name": "careful"}, "spec": {"approval": "Manual"},
        });
        let careful = serde_json::from_value(careful).unwrap();
        policies.create(&PostParams::default(), &careful).await.unwrap();
        let told = tour.run(&["up", "retire-instance", "--in", "2h"]).await;
        let retired = victim(&told, &status);
        let approve = format!("machines/{retired}/approve");
        eventually("the plan waits for a person, who approves on the page", async || {
            let plan = page.get("plan", token).await.ok()?;
            let entries = plan["entries"].as_array().unwrap();
            let entry = entries.iter().find(|entry| entry["machine"] == retired.as_str())?;
            (entry["needsApproval"] == true && entry["isStuck"] == true).then_some(())?;
            page.post(&approve, token, json!({})).await.ok()
        })
        .await;
        eventually("it is replaced", async || {
            let gone = page.get(&format!("machines/{retired}"), token).await.err()? == 404;
            gone.then_some(())
        })
        .await;
        eventually("everything is well again", &all_well).await;

        // A zone fails, and nothing is deleted.
        let before = tour.document(&["status"]).await;
        tour.run(&["up", "break-zone"]).await;
        eventually("the zone is seen to be broken", async || {
            let fleet = page.get("fleet", token).await.ok()?;
            (fleet["drift"].as_u64()? > 0 && fleet["attentionTotal"].as_u64()? > 0).then_some(())
        })
        .await;
        tour.run(&["up", "mend-zone"]).await;
        eventually("everything is well again", &all_well).await;
        let again = tour.try_run(&["up", "mend-zone"]).await;
        assert_eq!(again.status.code(), Some(1), "there is nothing to mend");
        let after = tour.document(&["status"]).await;
        assert_eq!(names(&before), names(&after), "nothing was deleted");

        every_command_prints_every_form(&tour).await;
        assert!(tour.run(&["down"]).await.contains("the cluster is gone"));
        assert!(!tour.folder.path().join(".machinist").exists());
    });
}

/// Which machine an experiment chose, of those that there are.
fn victim(told: &str, status: &Value) -> String {
    let all = names(status);
    let chosen = all.iter().find(|name| told.contains(&format!("explain {name}\n")));
    chosen.unwrap_or_else(|| panic!("{told}")).clone()
}

fn names(status: &Value) -> Vec<String> {
    let pools = status["pools"].as_array().unwrap().iter();
    let machines = pools.flat_map(|pool| pool["machines"].as_array().unwrap());
    machines.map(|machine| machine["name"].as_str().unwrap().to_owned()).collect()
}

async fn admin(state: &Value) -> Client {
    let file = state["kubeconfig"].as_str().unwrap();
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

async fn every_command_prints_every_form(tour: &Tour) {
    let machine = names(&tour.document(&["status"]).await).remove(0);
    let commands: [&[&str]; 7] = [
        &["status"],
        &["plan"],
        &["explain", &machine],
        &["windows"],
        &["drift"],
        &["events"],
        &["doctor"],
    ];
    for words in commands {
        for form in ["json", "yaml", "wide", "name"] {
            let text = tour.run(&[words, &["-o", form]].concat()).await;
            match form {
                "json" => drop(serde_json::from_str::<Value>(&text).unwrap()),
                "yaml" => drop(serde_saphyr::from_str::<Value>(&text).unwrap()),
                _ => {}
            }
        }
        tour.run(words).await;
    }
    let file = tour.folder.path().join("fleet.json");
    tour.run(&["dump", "--to", file.to_str().unwrap()]).await;
    let kept = tour.document(&["plan", "-f", file.to_str().unwrap()]).await;
    assert_eq!(kept["entries"], tour.document(&["plan"]).await["entries"]);
    let refused = tour.try_run(&["approve", &machine]).await;
    assert_eq!(refused.status.code(), Some(1), "nothing waits for an approval");
    for verb in ["pause", "resume"] {
        let done = tour.document(&["maintenance", verb]).await;
        assert_eq!(done["changed"], true, "{done:#}");
    }
}
