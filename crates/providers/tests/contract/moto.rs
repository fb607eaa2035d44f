//! moto, a stand-in for AWS that nobody here wrote. It keeps us from agreeing only with ourselves.
//!
//! What moto does otherwise than EC2, and why the checks that show it are left out there:
//!
//! - ClientTokens: launches and hosts ignore the token and no filter searches for it.
//! - Reports: every check passes for ever, and pages are not cut.
//! - HostsAreHeld: hosts cannot be found by a tag, and go while an instance is on them.
//! - StrictLoadBalancers: a classic load balancer takes instances that do not exist, and one
//!   instance twice; a missing one is an HTTP 500 without a code.
//! - TagsOnlyWhatExists: an id that nothing has can be tagged.
//! - Faults, Ledger: nothing can be made to fail, and no request can be read again.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use machinist_providers::{
    InstanceId,
    aws::{AwsCredentials, AwsProvider, AwsSettings},
};
use serde_json::{Value, json};

use crate::{
    console::Console,
    harness::{Calls, Capability, Harness, Schedule},
};

/// A server that lives as long as it is held, and takes orders line by line.
struct Moto {
    process: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Moto {
    fn start(environment: &str) -> (Self, Value) {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        // A relative path means the workspace's folder, where the Makefile makes the environment.
        let python = crate_folder.join("../..").join(environment).join("bin/python");
        let mut process = Command::new(&python)
            .arg(crate_folder.join("tests/contract/moto_server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {}: {error}", python.display()));
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let server = Self { process, talk: Mutex::new((input, output)) };
        let world = server.next_answer();
        (server, world)
    }

    fn next_answer(&self) -> Value {
        let mut line = String::new();
        self.talk.lock().unwrap().1.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("moto says {line:?} ({error}); is moto[ec2,server] installed in MACHINIST_VENV?")
        })
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It ends by itself with its input; whoever has ended already is no worse.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Schedule for Moto {
    fn schedule_retirement(
        &self,
        instance: &InstanceId,
        not_before: Timestamp,
        deadline: Timestamp,
    ) -> String {
        let order = json!({
            "instance": instance.0,
            "code": "instance-retirement",
            "description": "degraded hardware",
            "notBefore": not_before,
            "notBeforeDeadline": deadline,
        });
        writeln!(self.talk.lock().unwrap().0, "{order}").unwrap();
        self.next_answer()["id"].as_str().unwrap().to_owned()
    }
}

/// Starts moto, or returns none where the caller asked to do without.
///
/// # Panics
/// When there is no virtual environment: a check that is left out in silence is no check.
pub async fn start() -> Option<Harness> {
    if std::env::var("MACHINIST_SKIP_MOTO").is_ok_and(|value| value == "1") {
        println!("left out: MACHINIST_SKIP_MOTO=1");
        return None;
    }
    let environment = std::env::var("MACHINIST_VENV").unwrap_or_else(|_| {
        panic!(
            "MACHINIST_VENV is not set: make a virtual environment with `python3 -m venv .venv`, \
             install crates/providers/tests/contract/requirements.txt into it, and set \
             MACHINIST_VENV=.venv; or set MACHINIST_SKIP_MOTO=1 to leave moto out"
        )
    });
    let (server, world) = Moto::start(&environment);
    let server = Arc::new(server);
    let calls = Arc::new(Calls::default());
    let credentials = AwsCredentials::Static {
        access_key_id: "testing".to_owned(),
        secret_access_key: "testing".to_owned(),
    };
    let text = |key: &str| world[key].as_str().unwrap().to_owned();
    let settings = AwsSettings {
        page_size: 5,
        observer: Some(calls.observer()),
        ..AwsSettings::new(text("region"), credentials).with_one_endpoint(&text("endpoint"))
    };
    let spec = json!({
        "ami": {"id": world["image"]},
        "instanceType": "m5.large",
        "subnet": {"id": world["subnet"]},
        "securityGroups": [{"id": world["securityGroup"]}],
        "placement": {"region": world["region"], "availabilityZone": world["zone"]},
        "tags": [{"name": "team", "value": "blue"}],
    });
    let mut by_filters = spec.clone();
    by_filters["ami"] = json!({"filters": [{"name": "architecture", "values": ["x86_64"]}]});
    by_filters["subnet"] = json!({"filters": [{"name": "tag:Name", "values": ["workers"]}]});
    by_filters["securityGroups"] =
        json!([{"filters": [{"name": "group-id", "values": [world["securityGroup"]]}]}]);
    Some(Harness {
        provider: Arc::new(AwsProvider::new(settings.clone()).await.unwrap()),
        console: Console::new(&settings, &text("vpc"), &text("subnet"), &text("zone")),
        settings,
        capabilities: [Capability::Queue, Capability::Roles, Capability::Events].into(),
        provider_spec: spec,
        provider_spec_by_filters: by_filters,
        calls,
        levers: None,
        schedule: Arc::clone(&server) as Arc<dyn Schedule>,
        _server: Box::new(server),
        machines: 1.into(),
    })
}
