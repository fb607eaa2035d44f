//! Does a child die with its parent, however the parent ends?

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use machinist_testbed::process::{Launch, Process};

use crate::support::{eventually, guard, run};

const HELPER: &str = "children::helper_that_starts_a_child_and_waits_to_be_killed";
const MARK: &str = "child process id: ";

#[test]
fn no_child_survives_a_parent_that_is_killed() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", HELPER, "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    // The test harness prints its own text before the helper's on the same line.
    let child = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once(MARK)?.1.trim().to_owned()))
        .unwrap();
    assert!(is_alive(&child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    run(async {
        eventually("the child is gone", || async { (!is_alive(&child)).then_some(()) }).await;
    });
}

#[test]
#[ignore = "a helper that another test runs as a process of its own"]
fn helper_that_starts_a_child_and_waits_to_be_killed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let child = Process::start(&guard(), sleeping(folder.path())).await.unwrap();
        println!("{MARK}{}", child.id());
        child.wait().await;
    });
}

#[test]
fn a_child_is_ended_by_request_and_by_force() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        for force in [false, true] {
            let child = Process::start(&guard(), sleeping(folder.path())).await.unwrap();
            assert!(child.is_running());
            child.check_running().unwrap();
            if force {
                child.kill().await;
            } else {
                child.stop(Duration::from_secs(60)).await;
            }
            assert!(!child.is_running());
            child.check_running().unwrap_err();
        }
    });
}

#[test]
fn a_guard_whose_parent_is_another_process_starts_nothing() {
    let guard = Command::new(env!("CARGO_BIN_EXE_testbed-guard"))
        .args(["__guard", "1", "/bin/echo", "started"])
        .output()
        .unwrap();
    assert!(!guard.status.success());
    assert!(guard.stdout.is_empty());
}

fn sleeping(folder: &Path) -> Launch {
    Launch {
        name: "sleep".to_owned(),
        program: "/bin/sleep".into(),
        arguments: vec![OsString::from("600")],
        environment: Vec::new(),
        home: folder.to_owned(),
        log_folder: folder.to_owned(),
    }
}

/// Whether the process exists and is more than an entry that nobody has collected yet.
fn is_alive(process_id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status"));
    status.is_ok_and(|text| !text.contains("State:\tZ"))
}
