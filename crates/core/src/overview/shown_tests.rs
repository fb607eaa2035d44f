//! Is what is shown what is so, in the same order and the same words, and nothing that is secret?

mod world;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

use super::{
    calendar_view::{Tone, calendar, days},
    delta::{Change, Seen},
    drift_view::{DriftEntry, drift},
    fleet::fleet,
    machine::Sees,
    plan_view::plan,
    pods::DrainWord,
    policies::policies,
    query::{self, Filter},
    row::{StandingWord, rows},
    state::MachineState,
    what_if::{ChangeWord, WhatIf, what_if},
    wish::{Object, approve, postpone},
};
use world::{ALL, CANARY, World, machine_of, merge, node_of, now, of, world};

#[test]
fn each_machine_has_the_state_that_a_person_would_give_it() {
    let rows = world().rows();
    let states: Vec<(&str, MachineState)> =
        rows.values().map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(
        states,
        [
            ("a", MachineState::Well),
            ("b", MachineState::Well),
            ("c", MachineState::Down),
            ("d", MachineState::Starting),
            ("e", MachineState::Leaving),
            ("f", MachineState::Attention),
        ]
    );
    let stopped = &rows["c"];
    assert_eq!(stopped.drift.as_deref(), Some("was stopped by a user"));
    assert_eq!(
        stopped.waiting.as_ref().unwrap().message,
        "instance i-c was stopped by a user",
        "the words are those of the condition"
    );
    let planned = rows["b"].maintenance.as_ref().unwrap();
    assert_eq!(planned.standing, StandingWord::Blocked);
    assert!(planned.needs_approval);
}

#[test]
fn a_maintenance_under_way_is_seen_in_the_state() {
    let mut world = world();
    let mut value = serde_json::to_value(&world.maintenances[0]).unwrap();
    value["status"]["phase"] = json!("Draining");
    value["status"]["work"] = json!({ "action": "Reboot", "startedAt": "2026-11-02T09:00:00Z" });
    world.maintenances = vec![of(value)];
    assert_eq!(world.rows()["b"].state, MachineState::Maintenance);
}

/// What is launched into a zone belongs there on the map from the beginning.
#[test]
fn a_machine_without_a_zone_yet_is_where_its_pool_makes_machines() {
    let mut world = world();
    world.machines[3].metadata.labels.as_mut().unwrap().remove("machine.openshift.io/zone");
    assert_eq!(world.rows()["d"].zone, None, "nobody says where it will be");
    let mut set = serde_json::to_value(&world.sets[0]).unwrap();
    set["spec"]["template"]["spec"]["providerSpec"]["value"]["placement"] =
        json!({ "availabilityZone": "eu-1b" });
    world.sets = vec![of(set)];
    let rows = world.rows();
    assert_eq!(rows["d"].zone.as_deref(), Some("eu-1b"));
    assert_eq!(rows["a"].zone.as_deref(), Some("eu-1a"), "what is known counts");
}

/// The operator keeps no messages of Nodes' conditions.
#[test]
fn a_silent_node_is_told_of_without_words_that_nobody_has() {
    let mut world = world();
    world.nodes[0] = node_of("a", "Unknown");
    let row = &world.rows()["a"];
    assert_eq!(row.waiting.as_ref().unwrap().message, "node node-a is silent");
}

#[test]
fn failing_checks_are_drift_too() {
    let mut world = world();
    let checks = json!({ "status": { "conditions": [
        { "type": "InstanceHealthy", "status": "False", "reason": "Impaired",
          "message": "instance i-a fails the provider's checks: system since 2026-11-02T09:00:00Z",
          "lastTransitionTime": "2026-11-02T09:00:00Z" },
    ] } });
    world.machines[0] = machine_of("a", &checks);
    assert_eq!(world.rows()["a"].drift.as_deref(), Some("fails the provider's checks"));
    assert_eq!(world.fleet().drift, 2);
    let list = drift(&world.objects(), &[], now());
    assert_eq!((list.total, list.past.len()), (2, 0), "as many as are counted");
}

#[test]
fn what_is_over_is_told_apart_from_what_is_not() {
    let world = world();
    let event = |reason: &str, message: &str| -> Event {
        of(json!({
            "metadata": { "name": reason },
            "involvedObject": { "kind": "Machine", "namespace": "ns", "name": "a", "uid": "uid-a" },
            "reason": reason, "message": message, "source": { "component": "machinist" },
            "firstTimestamp": "2026-11-02T09:00:00Z", "lastTimestamp": "2026-11-02T09:00:00Z",
        }))
    };
    let stopped = event("StoppedByUser", "instance i-a was stopped by a user; it is started again");
    let runs = event("Update", "instance i-a runs again, as was decided");
    let list = drift(&world.objects(), &[&stopped, &runs], now());
    let names = |entries: &[DriftEntry]| -> Vec<String> {
        entries.iter().map(|entry| entry.machine.clone()).collect()
    };
    assert_eq!((names(&list.entries), names(&list.past)), (vec!["c".into()], vec!["a".into()]));
    let past = &list.past[0];
    assert!(past.is_over && past.over_at.is_some() && !past.needs_a_person);
    assert_eq!(past.done[0].words, "instance i-a runs again, as was decided");
    assert_eq!(past.response, "", "nothing more follows");
}

#[test]
fn only_what_does_not_pass_by_itself_is_stuck() {
    let mut world = world();
    let mut under_way = |reason: &str| {
        let mut value = serde_json::to_value(&world.maintenances[0]).unwrap();
        value["status"]["phase"] = json!("Draining");
        value["status"]["work"] =
            json!({ "action": "Reboot", "startedAt": "2026-11-02T09:00:00Z" });
        value["status"]["plan"] = json!({ "waitsOn": [{ "reason": reason, "message": "words" }] });
        world.maintenances = vec![of(value)];
        world.look(|picture| plan(picture).entries[0].is_stuck)
    };
    assert!(!under_way("SurgeNotReady"));
    assert!(!under_way("Draining"));
    assert!(under_way("DrainBlocked"));
    let waiting = self::world();
    assert!(waiting.look(|picture| plan(picture).entries[0].is_stuck), "it is to be approved");
}

#[test]
fn the_fleet_is_told_in_one_sentence_and_counted() {
    let fleet = world().fleet();
    assert_eq!(
        fleet.headline,
        "2 of 6 machines are well; 1 is down; 1 is not as it should be; 1 is starting; 1 is leaving; \
         1 maintenance waits for an approval."
    );
    assert_eq!(fleet.counts.machines, 6);
    assert_eq!(fleet.counts.by_state.len(), 6, "every state has its number");
    let named: Vec<&str> = fleet.attention.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(named, ["c", "f"], "the worst first");
    assert_eq!(fleet.pools[0].counts.machines, 6);
    assert_eq!((fleet.drift, fleet.maintenance.need_approval), (1, 1));
    assert_eq!(World { machines: Vec::new(), ..world() }.fleet().headline, "There is no machine.");
}

#[test]
fn machines_are_filtered_searched_sorted_and_paged() {
    let rows = world().rows();
    let ask = |pairs: &[(&str, &str)]| {
        let (filter, page) = query::read(pairs.iter().copied()).unwrap();
        let (total, found, next) = query::page(&rows, &filter, &page);
        let names: Vec<&str> = found.into_iter().map(|row| row.name.as_str()).collect();
        (total, names.join(""), next)
    };
    type Asked<'a> = &'a [(&'a str, &'a str)];
    let table: [(Asked<'_>, usize, &str, Option<&str>); 11] = [
        (&[], 6, "abcdef", None),
        (&[("limit", "2")], 6, "ab", Some("b")),
        (&[("limit", "2"), ("cursor", "b")], 6, "cd", Some("d")),
        (&[("limit", "2"), ("cursor", "bb")], 6, "cd", Some("d")),
        (&[("limit", "2"), ("cursor", "d")], 6, "ef", None),
        (&[("sort", "state"), ("limit", "2")], 6, "cf", Some("f")),
        (&[("order", "desc")], 6, "fedcba", None),
        (&[("search", "I-C")], 1, "c", None),
        (&[("search", "10.0.0.1"), ("attention", "true")], 2, "cf", None),
        (&[("state", "down"), ("state", "starting")], 2, "cd", None),
        (&[("pool", "-"), ("zone", "eu-1a")], 0, "", None),
    ];
    for (pairs, total, names, next) in table {
        let expected = (total, names.to_owned(), next.map(str::to_owned));
        assert_eq!(ask(pairs), expected, "{pairs:?}");
    }
    for bad in [("limit", "0"), ("limit", "501"), ("sort", "x"), ("state", "x"), ("x", "")] {
        assert!(query::read([bad]).is_err(), "{bad:?}");
    }
    assert!(query::read([("search", "x".repeat(201).as_str())]).is_err());
    let many = vec![("pool", "x"); 101];
    assert!(query::read(many).is_err());
}

#[test]
fn the_pages_together_are_the_whole_and_nothing_twice() {
    let rows = world().rows();
    for (sort, order) in [("name", "asc"), ("name", "desc"), ("state", "asc"), ("age", "desc")] {
        let (mut seen, mut cursor): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let mut pairs = vec![("sort", sort), ("order", order), ("limit", "2")];
            pairs.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let (filter, page) = query::read(pairs).unwrap();
            let (_, found, next) = query::page(&rows, &filter, &page);
            seen.extend(found.into_iter().map(|row| row.name.clone()));
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        seen.sort();
        assert_eq!(seen.concat(), "abcdef", "{sort} {order}");
    }
}

#[test]
fn the_map_has_every_machine_with_its_place_and_state() {
    let rows = world().rows();
    let map = query::map(&rows, &Filter::default(), "v".to_owned(), now());
    assert_eq!(map.machines.len(), 6);
    let stopped = map.machines.iter().find(|one| one.0 == "c").unwrap();
    assert_eq!(map.pools[stopped.1].as_deref(), Some("pool"));
    assert_eq!(map.zones[stopped.2].as_deref(), Some("eu-1a"));
    assert_eq!(map.states[stopped.3], MachineState::Down);
}

#[test]
fn what_differs_between_the_three_views_is_marked_and_said() {
    let world = world();
    let differing = |name: &str| -> Vec<(&'static str, String)> {
        let views = world.detail(name, ALL).views;
        let differing = views.rows.into_iter().filter(|row| row.differs);
        differing.map(|row| (row.key, row.why.unwrap())).collect()
    };
    assert_eq!(differing("a"), []);
    assert_eq!(
        differing("c"),
        [("state", "the machine is Running, but its instance is stopped".to_owned())]
    );
    assert_eq!(
        differing("f"),
        [("state", "the instance runs, but its node is NotReady".to_owned())]
    );
    let mut other = world.clone();
    other.nodes[0].spec.as_mut().unwrap().provider_id = Some("aws:///eu-1a/i-other".to_owned());
    let views = other.detail("a", ALL).views;
    let row = views.rows.iter().find(|row| row.key == "providerID").unwrap();
    assert_eq!(row.why.as_deref(), Some("the node says that it is another instance"));
}

#[test]
fn pods_in_the_way_come_first_with_their_budgets() {
    let pods = world().detail("b", ALL).pods;
    let shown: Vec<(&str, DrainWord)> =
        pods.pods.iter().map(|pod| (pod.name.as_str(), pod.drain)).collect();
    assert_eq!(
        shown,
        [
            ("web", DrainWord::Blocked),
            ("batch", DrainWord::Refuses),
            ("free", DrainWord::Evicted),
            ("agent", DrainWord::Stays),
        ]
    );
    let budget = &pods.budgets[0];
    assert_eq!(
        (budget.name.as_str(), budget.blocks.as_slice()),
        ("web", &["apps/web".to_owned()][..])
    );
    assert_eq!(budget.words, "it lets no pod go now: 2 of 3 pods are healthy, and 2 must be");
}

#[test]
fn what_somebody_may_not_see_is_not_there_and_that_is_said() {
    let sees = Sees { no_node: Some("you may not get nodes"), no_pods: Some("no pods for you") };
    let detail = world().detail("b", sees);
    assert_eq!(detail.row.node, None);
    assert!(detail.views.rows.iter().all(|row| row.node.is_none()));
    assert_eq!(detail.views.node_hidden.as_deref(), Some("you may not get nodes"));
    assert!(detail.conditions.iter().all(|condition| condition.of != "Node"));
    assert!(detail.pods.pods.is_empty() && detail.pods.budgets.is_empty());
    assert_eq!(detail.pods.hidden.as_deref(), Some("no pods for you"));
}

#[test]
fn the_calendar_shows_windows_and_what_waits() {
    let world = world();
    let (from, to) = days(None, None, now()).unwrap();
    let view = world.look(|picture| calendar(picture, from, to));
    let lane = &view.lanes[0];
    assert_eq!((lane.policy.as_deref(), lane.machines), (Some("nights"), 6));
    assert_eq!(lane.windows.len(), 14);
    assert_eq!(view.unplaced[0].entry.machine, "b");
    let mut approved = world.with_nothing_in_the_way();
    let annotations = approved.maintenances[0].metadata.annotations.get_or_insert_default();
    annotations.insert("machinist.dev/maintenance-approved".to_owned(), "true".to_owned());
    let view = approved.look(|picture| calendar(picture, from, to));
    assert_eq!(view.bars.len(), 1);
    assert_eq!(view.bars[0].start.to_string(), "2026-11-02T22:00:00Z");
    assert_eq!(view.bars[0].tone, Tone::Planned);
    assert!(days(Some(to), Some(from), now()).is_err(), "it ends before it begins");
    let year = from.checked_add(jiff::SignedDuration::from_hours(366 * 24)).unwrap();
    assert!(days(Some(from), Some(year), now()).is_err(), "that is too much");
}

#[test]
fn what_would_change_is_said_and_nothing_is_changed() {
    let world = world();
    let before = world.look(plan);
    let wish: WhatIf = of(json!({
        "policies": [{
            "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
            "metadata": { "name": "nights" }, "spec": { "approval": "Automatic" },
        }],
        "events": [{ "machine": "a", "code": "instance-retirement", "notBefore": "2026-11-20T00:00:00Z" }],
    }));
    let answer = what_if(&world.objects(), &wish, now()).unwrap();
    let changes: Vec<(&str, ChangeWord)> =
        answer.changes.iter().map(|one| (one.machine.as_str(), one.change)).collect();
    assert_eq!(changes, [("a", ChangeWord::Added), ("b", ChangeWord::Earlier)]);
    assert_eq!(answer.summary, "The plan would change: 1 new, 1 earlier.");
    assert_eq!(answer.before, before);
    assert_eq!(world.look(plan), before, "the world is as it was");
    let same = what_if(&world.objects(), &WhatIf::default(), now()).unwrap();
    assert_eq!(same.summary, "The plan would stay as it is.");
}

#[test]
fn a_trial_that_makes_no_sense_is_refused_by_the_field() {
    let world = world();
    for (wish, problem) in [
        (
            json!({ "events": [{ "machine": "x", "code": "instance-stop", "notBefore": "2026-11-20T00:00:00Z" }] }),
            "events[0].machine: there is no machine x",
        ),
        (
            json!({ "events": [{ "machine": "a", "code": "x", "notBefore": "2026-11-20T00:00:00Z" }] }),
            "events[0].code: Unsupported value",
        ),
        (
            json!({ "events": [{ "machine": "d", "code": "instance-stop", "notBefore": "2026-11-20T00:00:00Z" }] }),
            "events[0].machine: machine d has no instance yet",
        ),
        (json!({ "withoutPolicies": ["x"] }), "withoutPolicies: there is no MaintenancePolicy x"),
        (json!({ "requests": [{ "machine": "b" }] }), "requests[0].machine: machine b has a"),
        (json!({ "policies": [{ "kind": "Pod" }] }), "policies[0]: kind: Unsupported value"),
        (
            json!({ "policies": [{ "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
            "metadata": { "name": "n" }, "spec": { "windows": [{ "name": "w", "cron": "x", "duration": "1h" }] } }] }),
            "policies[0]: maintenancepolicy/n: spec.windows[0]",
        ),
    ] {
        let refusal = what_if(&world.objects(), &of(wish), now()).unwrap_err();
        assert!(refusal.what.starts_with(problem), "{problem}: {}", refusal.what);
    }
}

#[test]
fn a_maintenance_is_put_off_and_the_plan_says_by_whom() {
    let mut world = world().with_nothing_in_the_way();
    let annotations = world.maintenances[0].metadata.annotations.get_or_insert_default();
    annotations.insert("machinist.dev/maintenance-approved".to_owned(), "true".to_owned());
    let until: Timestamp = "2026-11-04T12:00:00Z".parse().unwrap();
    let change = world.look(|picture| postpone::machine("b", Some(until), picture)).unwrap();
    let write = change.write.unwrap();
    assert_eq!((write.on, write.name.as_str()), (Object::Maintenance, "mm-b"));
    let mut value = serde_json::to_value(&world.maintenances[0]).unwrap();
    merge(&mut value, &write.patch);
    world.maintenances = vec![of(value)];
    world.look(|picture| {
        let entry = picture.plan.entry("b").unwrap();
        assert_eq!(entry.start.unwrap().to_string(), "2026-11-04T22:00:00Z");
    });
    let shown = world.look(plan);
    assert_eq!(shown.entries[0].postponed_until, Some(until));
    let back = world.look(|picture| postpone::machine("b", None, picture)).unwrap();
    assert!(back.write.is_some());
    let past = Some("2026-11-01T00:00:00Z".parse().unwrap());
    assert!(world.look(|picture| postpone::machine("b", past, picture)).is_err());
    assert!(world.look(|picture| postpone::machine("a", Some(until), picture)).is_err());
    let late = Some("2026-11-20T00:00:00Z".parse().unwrap());
    let sentence = world.look(|picture| postpone::machine("b", late, picture)).unwrap().sentence;
    assert!(sentence.contains("the provider does not wait"), "{sentence}");
}

#[test]
fn the_buttons_are_those_that_would_do_something() {
    let world = world();
    let actions = world.detail("b", ALL).actions;
    assert!(actions.approve.possible && actions.postpone.possible && actions.pause.possible);
    assert_eq!(actions.resume.why.as_deref(), Some("it is not paused"));
    let actions = world.detail("a", ALL).actions;
    assert!(!actions.approve.possible);
    let how = approve::How { any_reason: false, until: now() };
    let refusal = world.look(|picture| approve::machine("a", how, picture)).unwrap_err();
    assert_eq!(actions.approve.why, Some(refusal.what), "the words are those of the refusal");
}

#[test]
fn only_what_changed_is_told() {
    let world = world();
    let seen = |world: &World| {
        world.look(|picture| {
            let rows = rows(picture);
            (fleet(picture, &rows), rows, plan(picture), policies(picture))
        })
    };
    let between = |before: &World, after: &World| {
        let (before, after) = (seen(before), seen(after));
        let (fleet, rows, plan, policies) = &before;
        let then = Seen { rows, fleet, plan, policies };
        let (fleet, rows, plan, policies) = &after;
        Change::between(then, Seen { rows, fleet, plan, policies })
    };
    assert_eq!(between(&world, &world), None);
    let mut other = world.clone();
    other.nodes[0] = node_of("a", "False");
    let change = between(&world, &other).unwrap();
    let machines = change.machines.unwrap();
    let changed: Vec<&str> = machines.changed.iter().map(|row| row.name.as_str()).collect();
    assert_eq!((changed, machines.removed), (vec!["a"], Vec::new()));
    assert!(change.fleet.is_some() && !change.policies && !change.drift);
    let mut fewer = world.clone();
    fewer.machines.remove(2);
    let change = between(&world, &fewer).unwrap();
    assert_eq!(change.machines.unwrap().removed, ["c"]);
    assert!(change.drift, "what happened to it is no news any more");
    let mut paused = world.clone();
    paused.policies[0].spec.paused = Some(true);
    let change = between(&world, &paused).unwrap();
    assert!(change.policies && change.plan);
}

#[test]
fn nothing_secret_is_in_anything_that_is_shown() {
    let world = world();
    let mut shown = String::new();
    let mut add = |value: Value| shown.push_str(&value.to_string());
    add(serde_json::to_value(world.fleet()).unwrap());
    add(serde_json::to_value(world.look(plan)).unwrap());
    add(serde_json::to_value(world.look(policies)).unwrap());
    for name in world.rows().keys() {
        add(serde_json::to_value(world.detail(name, ALL)).unwrap());
    }
    assert!(shown.contains("nights") && shown.contains("uid-b"), "something is shown");
    assert!(!shown.contains(CANARY), "{shown}");
}
