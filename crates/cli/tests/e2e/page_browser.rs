//! Does the page show what happens, and let people do what they may? A real browser on the real operator.
//!
//! What a reader does is in `web/tests/live.mjs`; it asks, line by line, for what only the world outside of
//! the browser can do.

use std::{path::PathBuf, process::Stdio};

use kube::{Api, api::ListParams};
use machinist_api::MachineMaintenance;
use machinist_testbed::{
    cloud::model::{ChangedBy, EventCode},
    operator_process::OperatorProcess,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use crate::{
    arena::{Arena, run},
    maintenance::{MUCH_LATER, from_now, open_window},
    page::{bind, token},
    seen::{Subject, free_port},
};

const POOL: &str = "pool";

#[test]
fn a_person_sees_a_stop_live_tries_a_change_and_approves_a_retirement_on_the_page() {
    run(async {
        let arena = Arena::new("browser").await;
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let flags = [
            ("--page-address", address.as_str()),
            ("--page-plain-http", "true"),
            ("--page-writes", "true"),
        ];
        let operator = arena.start_operator_with(&flags).await;
        let policy = json!({
            "windows": [open_window()],
            "approval": "Manual",
            // Whoever stops it starts it again, when the reader has seen it.
            "drift": {"onStopped": "Report"},
        });
        arena.create_policy("nights", policy).await;
        arena.create_set(POOL, 3, json!({})).await;
        let machines = arena.wait_running(3).await;
        let subjects: Vec<Subject> = machines.iter().map(Subject::of).collect();
        let (editor, reader) = (token(&arena, "editor").await, token(&arena, "reader").await);
        bind(&arena, "machinist-page-reader", &["editor", "reader"]).await;
        bind(&arena, "machinist-page-writer", &["editor"]).await;
        let mut world = World { arena: &arena, operator, subjects };
        world.follow(&format!("http://{address}"), &editor, &reader).await;
    });
}

/// What the browser's steps may ask for.
struct World<'arena> {
    arena: &'arena Arena,
    operator: OperatorProcess,
    subjects: Vec<Subject>,
}

impl World<'_> {
    /// Runs the browser, and does what it asks for until it is through.
    async fn follow(&mut self, url: &str, editor: &str, reader: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/tests/live.mjs");
        let mut browser = Command::new("node")
            .arg(script)
            .args([url, editor, reader])
            .args(self.subjects.iter().map(|subject| subject.machine.as_str()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node, which `make page-test` needs");
        let mut answers = browser.stdin.take().unwrap();
        let mut lines = BufReader::new(browser.stdout.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            println!("browser: {line}");
            let Some(asked) = line.strip_prefix("ask ") else { continue };
            let words: Vec<&str> = asked.split(' ').collect();
            let answer = self.answer(&words).await;
            answers.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
        let status = browser.wait().await.unwrap();
        assert!(status.success(), "the browser's steps failed: {status}");
    }

    async fn answer(&mut self, words: &[&str]) -> Value {
        match *words {
            ["stop", machine] => {
                let instance = &self.subject(machine).instance;
                self.arena.cluster.cloud().stop(instance, ChangedBy::User).unwrap();
                Value::Null
            }
            ["start", machine] => {
                let instance = &self.subject(machine).instance;
                self.arena.cluster.cloud().start(instance).unwrap();
                Value::Null
            }
            ["retire", machine] => {
                let subject = self.subject(machine);
                let when = from_now(MUCH_LATER);
                self.arena.announce(subject, EventCode::InstanceRetirement, when);
                Value::Null
            }
            ["kill-operator"] => {
                self.operator.kill().await;
                Value::Null
            }
            ["start-operator"] => {
                self.operator.restart().await.unwrap();
                Value::Null
            }
            // All that a what-if could have saved.
            ["stored"] => self.stored().await,
            _ => panic!("the browser asks for {words:?}"),
        }
    }

    fn subject(&self, machine: &str) -> &Subject {
        self.subjects.iter().find(|subject| subject.machine == machine).unwrap()
    }

    /// What people have written: the policies, and what stands on maintenances besides their status.
    async fn stored(&self) -> Value {
        let policies = self.arena.policies().list(&ListParams::default()).await.unwrap();
        let ours = policies.items.into_iter().filter(|policy| {
            policy.metadata.name.as_deref().is_some_and(|name| name.starts_with(&self.arena.name))
        });
        let policies: Vec<Value> =
            ours.map(|policy| json!([policy.metadata.generation, policy.spec])).collect();
        let maintenances: Api<MachineMaintenance> = self.arena.api();
        let maintenances = maintenances.list(&ListParams::default()).await.unwrap();
        let maintenances: Vec<Value> = maintenances
            .items
            .into_iter()
            .map(|one| json!([one.metadata.name, one.metadata.annotations, one.spec]))
            .collect();
        json!([policies, maintenances])
    }
}
