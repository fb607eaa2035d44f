//! Is the right thing done for each event code, machine and policy?

use machinist_api::MaintenanceAction::{self, Nothing, Reboot, RebootMigrate, Replace, StopStart};

use super::*;
use crate::{
    cloud::{RebootMigration, RootDevice},
    maintenance::action::choose,
};

fn chosen(
    reasons: &[MaintenanceReason],
    traits: &Traits,
    policy: &Policy,
) -> Vec<MaintenanceAction> {
    let choice = choose(reasons, traits, policy);
    assert!(!choice.why.is_empty());
    let mut ladder = vec![choice.action];
    ladder.extend(choice.and_then);
    ladder
}

fn traits() -> Traits {
    Traits { replacement: Replacement::Pool, ..Traits::default() }
}

#[test]
fn usual_action_depends_on_code_disks_and_owner() {
    let local = Traits { has_instance_store: true, ..traits() };
    let local_root =
        Traits { root_device: RootDevice::InstanceStore, has_instance_store: true, ..traits() };
    let spot = Traits { is_interruptible: true, ..traits() };
    let alone = Traits { replacement: Replacement::Nobody, ..traits() };
    let migrates = Traits { reboot_migration: RebootMigration::Available, ..traits() };
    let cases: [(&str, &Traits, &[MaintenanceAction]); 22] = [
        ("instance-retirement", &traits(), &[Replace]),
        ("instance-retirement", &local_root, &[Replace]),
        ("instance-retirement", &alone, &[StopStart]),
        ("instance-stop", &traits(), &[StopStart, Replace]),
        ("instance-stop", &local, &[Replace]),
        ("instance-stop", &local_root, &[Replace]),
        ("instance-stop", &spot, &[Replace]),
        ("instance-stop", &alone, &[StopStart]),
        ("instance-reboot", &traits(), &[Reboot, StopStart, Replace]),
        ("instance-reboot", &local, &[Reboot, Replace]),
        ("instance-reboot", &spot, &[Reboot, Replace]),
        ("instance-reboot", &alone, &[Reboot, StopStart]),
        ("system-reboot", &traits(), &[StopStart, Replace]),
        ("system-reboot", &migrates, &[RebootMigrate, StopStart, Replace]),
        ("system-reboot", &local, &[Nothing]),
        ("system-reboot", &spot, &[Replace]),
        ("system-maintenance", &traits(), &[StopStart, Replace]),
        ("system-maintenance", &local, &[Nothing]),
        ("system-maintenance", &spot, &[Replace]),
        ("volume-retirement", &traits(), &[Nothing]),
        ("", &traits(), &[Nothing]),
        ("AWS_EC2_SOMETHING_NEW", &traits(), &[Nothing]),
    ];
    for (code, traits, expected) in cases {
        let reasons = [event(code, "e", None)];
        assert_eq!(chosen(&reasons, traits, &Policy::default()), expected, "{code} {traits:?}");
    }
}

#[test]
fn short_loss_of_network_is_no_reason_to_move() {
    let mut reason = event("system-maintenance", "e", None);
    for (words, expected) in [
        ("Network maintenance is scheduled", Nothing),
        ("Power maintenance is scheduled", StopStart),
        ("Network and power maintenance", StopStart),
    ] {
        reason.description = Some(words.to_owned());
        let actual = chosen(std::slice::from_ref(&reason), &traits(), &Policy::default());
        assert_eq!(actual[0], expected, "{words}");
    }
}

#[test]
fn policy_and_people_come_before_what_is_usual() {
    let policy = read_policy(json!({ "events": [
        { "code": "instance-retirement", "action": "StopStart", "escalation": ["Replace"] },
        { "code": "instance-stop", "action": "Nothing" },
        { "code": "instance-reboot", "action": "Reboot", "escalation": [] },
        { "code": "system-reboot", "action": "StopStart" },
    ] }));
    let local = Traits { has_instance_store: true, ..traits() };
    let of = |code: &str, traits: &Traits| chosen(&[event(code, "e", None)], traits, &policy);
    assert_eq!(of("instance-retirement", &traits()), [StopStart, Replace]);
    assert_eq!(of("instance-stop", &traits()), [Nothing]);
    assert_eq!(of("instance-reboot", &traits()), [Reboot]);
    assert_eq!(of("system-reboot", &local), [StopStart, Replace], "what is chosen may lose data");

    let mut wish = request("r");
    wish.action = Some(Reboot);
    assert_eq!(chosen(&[wish.clone()], &traits(), &policy), [Reboot, StopStart, Replace]);
    wish.action = None;
    assert_eq!(chosen(&[wish.clone()], &traits(), &policy), [Replace]);
    wish.action = Some(StopStart);
    let spot = Traits { is_interruptible: true, ..traits() };
    assert_eq!(chosen(&[wish], &spot, &policy), [Replace], "a wish that cannot be goes further up");
}

#[test]
fn of_several_reasons_the_one_that_needs_most_decides() {
    let reboot = event("instance-reboot", "e1", None);
    let stop = event("instance-stop", "e2", None);
    let retire = event("instance-retirement", "e3", None);
    let of = |reasons: &[MaintenanceReason]| chosen(reasons, &traits(), &Policy::default());
    assert_eq!(of(&[reboot.clone(), stop.clone()]), [StopStart, Replace]);
    assert_eq!(of(&[stop.clone(), reboot.clone()]), [StopStart, Replace]);
    assert_eq!(of(&[reboot, retire, stop]), [Replace]);
}

#[test]
fn what_cannot_be_done_says_why() {
    let traits = Traits { is_interruptible: true, ..Traits::default() };
    let choice = choose(&[event("instance-stop", "e", None)], &traits, &Policy::default());
    assert_eq!(choice.action, Nothing);
    assert_eq!(choice.why, "a spot instance cannot be stopped; nobody would make another machine");
}
