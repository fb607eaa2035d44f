//! Tables of what happened, and of what follows.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine,
    provider_status::{DriftRecord, ProviderStatus},
};
use serde_json::json;

use super::{
    Class, DriftPolicy,
    classify::{Since, since_recorded, why_down},
    respond::{Case, Kind, respond},
};
use crate::{
    cloud::{Instance, InstanceState},
    disruption::Pool,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_268_800 + seconds).unwrap()
}

fn instance(state: InstanceState, code: &str) -> Instance {
    serde_json::from_value(json!({
        "id": "i-1", "provider_id": "aws:///a/i-1", "state": state,
        "state_reason": {"code": code, "message": "", "since": null},
        "region": "r", "zone": "a", "instance_type": "t", "launched_at": at(0),
        "client_token": null, "interruptible": false, "tags": {}, "addresses": [], "host_id": null,
    }))
    .unwrap()
}

fn node(boot: &str, extra: serde_json::Value) -> Node {
    let mut node = json!({
        "metadata": {"name": "n"},
        "status": {"nodeInfo": {
            "architecture": "", "bootID": boot, "containerRuntimeVersion": "", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "",
            "osImage": "", "systemUUID": "",
        }},
    });
    for (key, value) in extra.as_object().unwrap() {
        if key == "annotations" {
            node["metadata"][key] = value.clone();
        } else {
            node["spec"][key] = value.clone();
        }
    }
    serde_json::from_value(node).unwrap()
}

#[test]
fn every_word_names_its_class_and_no_two_are_the_same() {
    for class in Class::ALL {
        assert_eq!(Class::from_reason(class.as_str()), Some(class));
    }
    assert_eq!(Class::from_reason("FailedUpdate"), None);
}

#[test]
fn the_provider_says_who_did_it() {
    use InstanceState::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
    let table = [
        (Pending, "", None),
        (Running, "Client.UserInitiatedShutdown", None),
        (Stopping, "Client.UserInitiatedShutdown", Some(Class::StoppedByUser)),
        (Stopped, "Client.UserInitiatedHibernate", Some(Class::StoppedByUser)),
        (Stopped, "Client.InstanceInitiatedShutdown", Some(Class::StoppedByGuest)),
        (Stopped, "Server.ScheduledStop", Some(Class::StoppedByProvider)),
        (Stopped, "Server.InsufficientInstanceCapacity", Some(Class::StoppedByProvider)),
        (Stopped, "Client.VolumeLimitExceeded", Some(Class::StoppedByProvider)),
        (Stopped, "", Some(Class::Stopped)),
        (ShuttingDown, "Client.UserInitiatedShutdown", Some(Class::TerminatedByUser)),
        (Terminated, "Client.InstanceInitiatedShutdown", Some(Class::TerminatedByGuest)),
        (Terminated, "Server.SpotInstanceTermination", Some(Class::SpotInterruption)),
        (Terminated, "Server.InternalError", Some(Class::TerminatedByProvider)),
        (Terminated, "", Some(Class::Terminated)),
    ];
    for (state, code, class) in table {
        assert_eq!(why_down(&instance(state, code)), class, "{state:?} {code}");
    }
}

#[test]
fn a_start_and_a_reboot_are_told_apart() {
    let running = instance(InstanceState::Running, "");
    let record = |launch: i64, boot: Option<&str>| ProviderStatus {
        launch_time: Some(at(launch)),
        boot_id: boot.map(str::to_owned),
        ..ProviderStatus::default()
    };
    let plain = json!({});
    let cordoned = json!({"unschedulable": true});
    let configured = json!({"annotations": {
        "machineconfiguration.openshift.io/currentConfig": "a",
        "machineconfiguration.openshift.io/desiredConfig": "b",
    }});
    let up_to_date = json!({"annotations": {
        "machineconfiguration.openshift.io/currentConfig": "a",
        "machineconfiguration.openshift.io/desiredConfig": "a",
    }});
    let unexpected = Since::Rebooted { expected: false };
    let table = [
        (record(0, None), node("b1", plain.clone()), Since::Nothing),
        (record(0, Some("b1")), node("b1", plain.clone()), Since::Nothing),
        (record(0, Some("b1")), node("", plain.clone()), Since::Nothing),
        (record(0, Some("b1")), node("b2", plain.clone()), unexpected),
        (record(0, Some("b1")), node("b2", up_to_date), unexpected),
        (record(0, Some("b1")), node("b2", cordoned), Since::Rebooted { expected: true }),
        (record(0, Some("b1")), node("b2", configured), Since::Rebooted { expected: true }),
        (record(-9, Some("b1")), node("b2", plain.clone()), Since::Started { by_us: false }),
    ];
    for (record, node, expected) in table {
        assert_eq!(since_recorded(&record, &running, Some(&node)), expected, "{record:?}");
    }
    // The boot that belongs to a start that was told already.
    let told = ProviderStatus { boot_pending: true, ..record(0, Some("b1")) };
    assert_eq!(since_recorded(&told, &running, Some(&node("b2", plain))), Since::Nothing);
    for attempts in [0, 1] {
        let drift = Some(DriftRecord { attempts, ..stopped_at(0) });
        let record = ProviderStatus { drift, ..record(-9, Some("b1")) };
        let expected = Since::Started { by_us: attempts > 0 };
        assert_eq!(since_recorded(&record, &running, None), expected);
    }
}

fn stopped_at(seconds: i64) -> DriftRecord {
    DriftRecord {
        class: "StoppedByUser".to_owned(),
        since: at(seconds),
        response: String::new(),
        attempts: 0,
        acted_at: None,
        failure: None,
    }
}

fn pool(desired: usize, healthy_others: usize, stopped_by_user: usize) -> Pool {
    Pool {
        name: "pool".to_owned(),
        desired,
        healthy_others,
        stopped_by_user,
        is_deleting: false,
        annotations: Default::default(),
    }
}

fn machine(annotations: serde_json::Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "m", "annotations": annotations}, "spec": {},
    }))
    .unwrap()
}

struct Asked {
    class: Class,
    annotations: serde_json::Value,
    pool: Option<Pool>,
    control_plane: bool,
    record: DriftRecord,
    startable: bool,
    joined: bool,
    doubt: Option<&'static str>,
}

impl Asked {
    fn stop() -> Self {
        Self {
            class: Class::StoppedByUser,
            annotations: json!({}),
            pool: Some(pool(4, 3, 0)),
            control_plane: false,
            record: stopped_at(0),
            startable: true,
            joined: true,
            doubt: None,
        }
    }

    fn gone(class: Class) -> Self {
        Self { class, startable: false, ..Self::stop() }
    }

    fn with(self, key: &str, value: &str) -> Self {
        let mut annotations = self.annotations.clone();
        annotations[format!("machinist.dev/{key}")] = value.into();
        Self { annotations, ..self }
    }

    fn answer(&self, now: i64) -> (Kind, String) {
        let machine = machine(self.annotations.clone());
        let policy = DriftPolicy::read(&machine, self.pool.as_ref(), self.control_plane);
        let response = respond(
            &Case {
                class: self.class,
                record: &self.record,
                is_settled: true,
                is_startable: self.startable,
                policy: &policy,
                pool: self.pool.as_ref(),
                has_joined: self.joined,
                doubt: self.doubt,
            },
            at(now),
        );
        (response.kind, response.words)
    }
}

const AFTER_GRACE: i64 = 300;

#[test]
fn a_stopped_instance_is_started_after_its_grace_period_by_default() {
    assert_eq!(Asked::stop().answer(299).0, Kind::Wait);
    assert_eq!(Asked::stop().answer(AFTER_GRACE).0, Kind::Start);
    let short = Asked::stop().with("stopped-grace-period", "10s");
    assert_eq!((short.answer(9).0, short.answer(10).0), (Kind::Wait, Kind::Start));
}

#[test]
fn policy_decides_and_a_hold_exempts() {
    let stop = Asked::stop;
    let control_plane = || Asked { control_plane: true, ..stop() };
    let no_pool = || Asked { pool: None, ..stop() };
    let table = [
        ("report", stop().with("on-stopped", "Report"), Kind::Report),
        ("replace", stop().with("on-stopped", "Replace"), Kind::Replace),
        ("control plane", control_plane(), Kind::Report),
        ("control plane asks for it", control_plane().with("on-stopped", "Start"), Kind::Start),
        ("hold", stop().with("hold", "looking at it"), Kind::Report),
        ("replace on hold", stop().with("on-stopped", "Replace").with("hold", ""), Kind::Report),
        ("spot cannot be started", Asked { startable: false, ..stop() }, Kind::Replace),
        ("nobody would make another", no_pool().with("on-stopped", "Replace"), Kind::Report),
        ("no pool, start", no_pool(), Kind::Start),
        ("bad value", stop().with("on-stopped", "Restart"), Kind::Report),
        ("bad grace", stop().with("stopped-grace-period", "soon"), Kind::Report),
        ("terminated", Asked::gone(Class::TerminatedByUser), Kind::Replace),
        (
            "terminated, report",
            Asked::gone(Class::Terminated).with("on-terminated", "Report"),
            Kind::Report,
        ),
        ("terminated, hold", Asked::gone(Class::Terminated).with("hold", "x"), Kind::Report),
        ("vanished", Asked::gone(Class::Vanished), Kind::Replace),
    ];
    for (name, asked, expected) in table {
        let (kind, words) = asked.answer(AFTER_GRACE);
        assert_eq!(kind, expected, "{name}: {words}");
    }
    let (_, words) = stop().with("on-stopped", "Restart").answer(0);
    assert!(words.contains("metadata.annotations[machinist.dev/on-stopped]"), "{words}");
    let (_, words) = stop().with("hold", "looking at it").answer(0);
    assert!(words.contains("on hold: looking at it"), "{words}");
}

#[test]
fn the_machine_overrides_its_pool() {
    let mut asked = Asked::stop();
    let mut with_policy = pool(4, 3, 0);
    with_policy.annotations.insert("machinist.dev/on-stopped".into(), "Report".into());
    asked.pool = Some(with_policy);
    assert_eq!(asked.answer(AFTER_GRACE).0, Kind::Report);
    assert_eq!(asked.with("on-stopped", "Start").answer(AFTER_GRACE).0, Kind::Start);
}

#[test]
fn a_user_who_stops_much_of_a_pool_is_not_fought() {
    let many = || Asked { pool: Some(pool(20, 11, 8)), ..Asked::stop() };
    let (kind, words) = many().answer(AFTER_GRACE);
    assert_eq!(kind, Kind::Report);
    assert!(words.contains("users stopped 9 machines of pool pool, more than 8"), "{words}");
    let few = Asked { pool: Some(pool(20, 12, 7)), ..Asked::stop() };
    assert_eq!(few.answer(AFTER_GRACE).0, Kind::Start);
    let by_provider = Asked { class: Class::StoppedByProvider, ..many() };
    assert_eq!(by_provider.answer(AFTER_GRACE).0, Kind::Start, "nobody meant that");
    let approved = many().with("approved-until", &at(400).to_string());
    assert_eq!(approved.answer(AFTER_GRACE).0, Kind::Start);
}

#[test]
fn the_gate_holds_choices_and_never_the_unavoidable() {
    let half = || Some(pool(20, 10, 0));
    let replace = || Asked { pool: half(), ..Asked::stop() }.with("on-stopped", "Replace");
    assert_eq!(replace().answer(AFTER_GRACE).0, Kind::Held);
    let approved = replace().with("approved-until", &at(400).to_string());
    assert_eq!(approved.answer(AFTER_GRACE).0, Kind::Replace);
    assert_eq!(approved.answer(401).0, Kind::Held, "an approval ends");
    let vanished = Asked { pool: half(), ..Asked::gone(Class::Vanished) };
    assert_eq!(vanished.answer(0).0, Kind::Held);
    let terminated = Asked { pool: half(), ..Asked::gone(Class::TerminatedByUser) };
    assert_eq!(terminated.answer(0).0, Kind::Replace, "certainly gone is no choice");
}

/// Where no record is kept, the sentence is the record.
#[test]
fn sentence_says_what_is_done() {
    let terminated = || Asked::gone(Class::TerminatedByProvider);
    let half = || Some(pool(20, 10, 0));
    let cases = [
        terminated(),
        Asked { joined: false, ..terminated() },
        Asked { pool: None, ..terminated() },
        Asked { pool: half(), ..Asked::gone(Class::Vanished) },
        Asked { pool: half(), ..Asked::stop() }.with("on-stopped", "Replace"),
    ];
    for asked in cases {
        for now in [4, AFTER_GRACE] {
            let (kind, words) = asked.answer(now);
            assert_eq!(Kind::said(&words), kind, "{words}");
        }
    }
}

#[test]
fn nothing_is_chosen_in_the_moment_in_which_it_is_noticed() {
    for policy in ["Start", "Replace"] {
        let at_once = Asked::stop().with("on-stopped", policy).with("stopped-grace-period", "0s");
        assert_eq!(at_once.answer(4).0, Kind::Wait, "{policy}");
        assert_ne!(at_once.answer(5).0, Kind::Wait, "{policy}");
    }
}

#[test]
fn what_dies_before_it_joins_is_not_replaced_in_a_loop() {
    for class in [Class::TerminatedByProvider, Class::Terminated, Class::Vanished] {
        let stillborn = || Asked { joined: false, ..Asked::gone(class) };
        assert_eq!(stillborn().answer(299).0, Kind::Wait, "{class:?}");
        assert_eq!(stillborn().answer(300).0, Kind::Replace, "{class:?}");
    }
    let by_user = Asked { joined: false, ..Asked::gone(Class::TerminatedByUser) };
    assert_eq!(by_user.answer(0).0, Kind::Replace, "a person did it once");
}

#[test]
fn a_doubtful_disappearance_is_held_whatever_the_pool() {
    let doubt = Some("its node is still Ready");
    let alone = || Asked { pool: Some(pool(1, 0, 0)), doubt, ..Asked::gone(Class::Vanished) };
    let (kind, words) = alone().answer(0);
    assert_eq!(kind, Kind::Held);
    assert!(words.contains("its node is still Ready"), "{words}");
    let approved = alone().with("approved-until", &at(400).to_string());
    assert_eq!(approved.answer(0).0, Kind::Replace);
}

#[test]
fn a_wrong_share_is_named() {
    let mut asked = Asked::stop();
    let mut wrong = pool(4, 3, 0);
    wrong.annotations.insert("machinist.dev/max-disrupted".into(), "most".into());
    asked.pool = Some(wrong);
    let (kind, words) = asked.answer(AFTER_GRACE);
    assert_eq!(kind, Kind::Report);
    assert!(words.contains("metadata.annotations[machinist.dev/max-disrupted]"), "{words}");
}

#[test]
fn a_failed_start_is_told_and_tried_again_more_and_more_slowly() {
    let mut asked = Asked::stop();
    asked.record.attempts = 2;
    asked.record.acted_at = Some(at(300));
    asked.record.failure = Some("ec2:StartInstances is not allowed".to_owned());
    let machine = machine(json!({}));
    let policy = DriftPolicy::read(&machine, asked.pool.as_ref(), false);
    let case = |record| Case {
        class: asked.class,
        record,
        is_settled: true,
        is_startable: true,
        policy: &policy,
        pool: asked.pool.as_ref(),
        has_joined: true,
        doubt: None,
    };
    let response = respond(&case(&asked.record), at(359));
    assert_eq!((response.kind, response.recheck), (Kind::Start, Some(at(360))));
    assert!(response.words.contains("ec2:StartInstances is not allowed"), "{}", response.words);
    assert_eq!(respond(&case(&asked.record), at(360)).recheck, None, "now");
}
