//! What goes wrong as time passes? Outages, crashes, pauses, bad nodes, people at the console, jumping
//! clocks; and how it all ends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use machinist_testbed::cloud::model::{
    self, Denied, ErrorFault, FateKind, InstanceState, LaunchFate, LaunchVisibility,
    LingeringTermination, Omissions, PageFaults, StaleReads, TimeoutFault,
};

use super::{FaultKind, api::Outages};
use crate::{
    actors::{Actor, Disturbance, Scene, later},
    api_server::Verb,
    chance::Chance,
    effects::{Effect, EffectFate, Interference, Place},
    hub::{Hub, lock},
    process::Incarnation,
    template::ACCESS_KEY,
};

/// How often it is asked whether something happens.
const TICK: Duration = Duration::from_secs(10);
const TICKS_IN_A_MINUTE: f64 = 6.0;

/// How much likelier everything is at the first tick. It comes while Machines that were there before the
/// operator have no phase yet, which later on is rare: without it, what strikes them would be left to luck.
const FIRST_TICK_FACTOR: f64 = 30.0;
/// The first tick comes before the operator has looked at everything.
const FIRST_TICK_WITHIN: u64 = 3_000;

/// What goes wrong as time passes.
#[derive(Debug)]
pub struct Storm {
    rates: BTreeMap<FaultKind, f64>,
    chance: Chance,
    outages: Arc<Mutex<Outages>>,
    until: Timestamp,
    next: Option<Timestamp>,
    is_first_tick: bool,
    crash_loop_until: Option<Timestamp>,
    denied_until: Option<Timestamp>,
    refused_until: Option<Timestamp>,
    /// For how long a read may be behind, as the operator is told.
    visibility: Duration,
}

impl Storm {
    #[must_use]
    pub const fn new(
        rates: BTreeMap<FaultKind, f64>,
        chance: Chance,
        outages: Arc<Mutex<Outages>>,
        until: Timestamp,
        visibility: Duration,
    ) -> Self {
        Self {
            rates,
            chance,
            outages,
            until,
            next: None,
            is_first_tick: true,
            crash_loop_until: None,
            denied_until: None,
            refused_until: None,
            visibility,
        }
    }

    fn rate(&self, kind: FaultKind) -> f64 {
        self.rates.get(&kind).copied().unwrap_or_default()
    }

    fn is_on(&self, kind: FaultKind) -> bool {
        self.rate(kind) > 0.0
    }

    fn hits(&mut self, kind: FaultKind) -> bool {
        let factor = if self.is_first_tick { FIRST_TICK_FACTOR } else { 1.0 };
        let rate = self.rate(kind) / TICKS_IN_A_MINUTE * factor;
        self.chance.hits(rate)
    }

    /// What holds from the beginning.
    fn begin(&mut self, scene: &Scene) {
        let rate = |kind| self.rate(kind);
        scene.hub.weather().disturbance = Some(Disturbance {
            late: rate(FaultKind::F70) / 2.0,
            never: rate(FaultKind::F70) / 2.0,
            stubborn: rate(FaultKind::F25),
            overreaching: rate(FaultKind::F73) * 0.2,
        });
        let faults = self.cloud_faults();
        let refused = scene.cloud.change(|model, now| model.add_faults(now, faults).err());
        if let Some(error) = refused {
            scene.hub.note("", format!("storm: faults refused: {error}"));
        }
        if self.is_on(FaultKind::F57) {
            scene.cloud.disturb_notices(Duration::from_secs(120), 0.2, 0.2);
        }
        for kind in FaultKind::ALL {
            let is_model = matches!(
                kind,
                FaultKind::F40
                    | FaultKind::F41
                    | FaultKind::F42
                    | FaultKind::F43
                    | FaultKind::F44
                    | FaultKind::F45
                    | FaultKind::F49
                    | FaultKind::F50
                    | FaultKind::F52
                    | FaultKind::F59
                    | FaultKind::F60
            );
            if is_model && self.is_on(*kind) {
                scene.hub.weather().standing.push(*kind);
            }
        }
    }

    fn cloud_faults(&mut self) -> model::Faults {
        let visibility = self.visibility.as_secs().saturating_sub(5);
        let lag = |chance: &mut Chance| {
            SignedDuration::from_secs(i64::try_from(chance.between(1, visibility)).unwrap_or(1))
        };
        let rate = |kind: FaultKind, rates: &BTreeMap<FaultKind, f64>| {
            rates.get(&kind).copied().unwrap_or_default()
        };
        let rates = self.rates.clone();
        let mut faults =
            model::Faults { throttling: self.is_on(FaultKind::F52), ..model::Faults::default() };
        if self.is_on(FaultKind::F40) {
            faults.launch_visibility = Some(LaunchVisibility {
                lag: lag(&mut self.chance),
                probability: rate(FaultKind::F40, &rates),
            });
        }
        if self.is_on(FaultKind::F41) || self.is_on(FaultKind::F42) {
            faults.omissions = Some(Omissions {
                by_id: rate(FaultKind::F41, &rates),
                by_filter: rate(FaultKind::F42, &rates),
            });
        }
        if self.is_on(FaultKind::F60) {
            faults.stale_reads = Some(StaleReads {
                lag: lag(&mut self.chance),
                probability: rate(FaultKind::F60, &rates),
            });
        }
        if self.is_on(FaultKind::F43) {
            faults.pages = Some(PageFaults { shuffled: true, short: true });
        }
        let refusal = |code: &str, probability: f64, effect: bool| ErrorFault {
            action: "RunInstances".to_owned(),
            code: code.to_owned(),
            message: None,
            status: None,
            count: None,
            probability,
            effect,
            access_key: None,
        };
        if self.is_on(FaultKind::F44) {
            let codes = [
                "InsufficientInstanceCapacity",
                "InternalError",
                "RequestLimitExceeded",
                "VcpuLimitExceeded",
            ];
            let code = self.chance.pick(&codes).copied().unwrap_or("InternalError");
            faults.errors.push(refusal(code, rate(FaultKind::F44, &rates), false));
        }
        if self.is_on(FaultKind::F45) {
            let half = rate(FaultKind::F45, &rates) / 2.0;
            faults.errors.push(refusal("InternalError", half, true));
            faults.timeouts.push(TimeoutFault {
                action: "RunInstances".to_owned(),
                after: SignedDuration::from_secs(5),
                count: None,
                probability: half,
                effect: true,
            });
        }
        if self.is_on(FaultKind::F49) {
            let half = rate(FaultKind::F49, &rates) / 2.0;
            for kind in [FateKind::Dies, FateKind::Stuck] {
                faults.launch_fates.push(LaunchFate {
                    kind,
                    code: None,
                    count: None,
                    probability: half,
                });
            }
        }
        if self.is_on(FaultKind::F50) {
            let half = rate(FaultKind::F50, &rates) / 2.0;
            let lasting = self.chance.seconds(60, 900);
            faults.lingering_terminations.push(LingeringTermination {
                lasting: SignedDuration::try_from(lasting).unwrap_or_default(),
                count: None,
                probability: half,
            });
            faults.errors.push(ErrorFault {
                action: "TerminateInstances".to_owned(),
                ..refusal("InvalidInstanceID.NotFound", half, false)
            });
        }
        if self.is_on(FaultKind::F59) {
            faults.launch_time_skew = Some(SignedDuration::from_mins(5));
        }
        faults
    }

    fn tick(&mut self, scene: &Scene, now: Timestamp) {
        self.disturb_api(scene, now);
        self.disturb_processes(scene, now);
        self.disturb_cloud(scene, now);
        self.disturb_nodes(scene);
    }

    fn disturb_api(&mut self, scene: &Scene, now: Timestamp) {
        if self.hits(FaultKind::F06) {
            let lasting = self.chance.seconds(60, 900);
            lock(&self.outages).unreachable_until = Some(later(now, lasting));
            scene.server.end_watches(|_| true);
            scene.hub.note("", format!("fault: F06 API server unreachable for {lasting:?}"));
            scene.hub.count_fault(FaultKind::F06, None);
        }
        if self.hits(FaultKind::F04) {
            let lasting = self.chance.seconds(1, 60);
            lock(&self.outages).throttled_until = Some(later(now, lasting));
            scene.hub.note("", format!("fault: F04 429 for {lasting:?}"));
        }
        if self.hits(FaultKind::F05) {
            let verbs = [Verb::MergePatch, Verb::Delete, Verb::Create, Verb::List, Verb::Update];
            let kinds = ["machines", "nodes", "pods", "secrets", "leases"];
            let verb = self.chance.pick(&verbs).copied().unwrap_or(Verb::MergePatch);
            let kind = self.chance.pick(&kinds).copied().unwrap_or("machines");
            let lasting = self.chance.seconds(30, 600);
            lock(&self.outages).forbidden = Some((verb, kind, later(now, lasting)));
            scene.hub.note("", format!("fault: F05 {verb:?} of {kind} forbidden for {lasting:?}"));
        }
        if self.hits(FaultKind::F13) {
            expire_history(scene);
            scene.hub.note("", "fault: F13 history expired");
            scene.hub.count_fault(FaultKind::F13, None);
            scene.hub.sometimes("a relist after expired history");
        }
    }

    fn disturb_processes(&mut self, scene: &Scene, now: Timestamp) {
        let living = scene.hub.with_processes(|all| all.living());
        if self.hits(FaultKind::F31) {
            self.crash_loop_until = Some(later(now, self.chance.seconds(30, 240)));
        }
        let is_looping = self.crash_loop_until.is_some_and(|until| now < until);
        if is_looping || self.hits(FaultKind::F38) {
            let kind = if is_looping { FaultKind::F31 } else { FaultKind::F38 };
            if let Some(victim) = self.chance.pick(&living) {
                // A rollout asks it to stop; everything else does not ask.
                if kind == FaultKind::F38 && self.chance.hits(0.3) {
                    scene.hub.note("", format!("fault: F38 {} is asked to stop", victim.tag));
                    scene.hub.count_fault(kind, None);
                    victim.terminate();
                } else {
                    crash(scene, victim, kind);
                }
            }
            return;
        }
        let Some(victim) = self.chance.pick(&living).cloned() else { return };
        if self.hits(FaultKind::F32) {
            let lasting = self.chance.seconds(1, 180);
            victim.pause(lasting);
            scene.hub.note("", format!("fault: F32 {} paused for {lasting:?}", victim.tag));
            scene.hub.count_fault(FaultKind::F32, None);
        }
        if self.hits(FaultKind::F33) {
            let lasting = self.chance.seconds(10, 240);
            lock(&self.outages).cut_off.insert(victim.tag.clone(), later(now, lasting));
            let tag = victim.tag.clone();
            scene.server.end_watches(move |watch| *watch.client == *tag);
            scene.hub.note("", format!("fault: F33 {} cut off for {lasting:?}", victim.tag));
            scene.hub.count_fault(FaultKind::F33, None);
        }
        if self.hits(FaultKind::F80) {
            let seconds = i64::try_from(self.chance.between(1, 3600)).unwrap_or(1);
            let by = if self.chance.hits(0.5) { seconds } else { -seconds };
            victim.jump_clock(SignedDuration::from_secs(by));
            scene.hub.note("", format!("fault: F80 the clock of {} jumps by {by} s", victim.tag));
            scene.hub.count_fault(FaultKind::F80, None);
        }
    }

    fn disturb_cloud(&mut self, scene: &Scene, now: Timestamp) {
        if self.hits(FaultKind::F51) {
            self.denied_until = Some(later(now, self.chance.seconds(30, 600)));
            let denied = Denied { action: "ec2:TerminateInstances".to_owned(), access_key: None };
            let faults = model::Faults { denied: vec![denied], ..Default::default() };
            scene.cloud.change(|model, now| model.add_faults(now, faults).map(|_| ()).err());
            scene.hub.note("", "fault: F51 terminations are refused");
            scene.hub.count_fault(FaultKind::F51, None);
        }
        if self.denied_until.take_if(|until| *until <= now).is_some() {
            scene.cloud.change(|model, _| model.clear_fault_kind("denied").err());
        }
        if self.hits(FaultKind::F58) {
            self.refused_until = Some(later(now, self.chance.seconds(60, 900)));
            let refused_access_keys = [ACCESS_KEY.to_owned()].into_iter().collect();
            let faults = model::Faults { refused_access_keys, ..Default::default() };
            scene.cloud.change(|model, now| model.add_faults(now, faults).map(|_| ()).err());
            scene.hub.note("", "fault: F58 the credentials are refused");
            scene.hub.count_fault(FaultKind::F58, None);
        }
        if self.refused_until.take_if(|until| *until <= now).is_some() {
            scene.cloud.change(|model, _| model.clear_fault_kind("refusedAccessKeys").err());
        }
    }

    fn disturb_nodes(&mut self, scene: &Scene) {
        let running: Vec<(String, Option<String>)> = scene
            .cloud
            .model()
            .snapshot()
            .into_iter()
            .filter(|one| one.state == InstanceState::Running)
            .map(|one| (one.id, one.tags.get("Name").cloned()))
            .collect();
        if self.hits(FaultKind::F71) {
            let all = self.chance.hits(0.2);
            let lasting = self.chance.seconds(10, 600);
            let one = self.chance.pick(&running).cloned();
            let hit: Vec<_> = if all { running.clone() } else { one.into_iter().collect() };
            for (id, name) in hit {
                scene.hub.weather().trouble_node(&id, FaultKind::F71, lasting);
                scene.hub.count_fault(FaultKind::F71, name.as_deref());
            }
        }
        if self.hits(FaultKind::F72)
            && let Some((id, name)) = self.chance.pick(&running).cloned()
        {
            let lasting = self.chance.seconds(60, 1200);
            scene.hub.weather().trouble_node(&id, FaultKind::F72, lasting);
            scene.hub.count_fault(FaultKind::F72, name.as_deref());
        }
    }
}

impl Actor for Storm {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        if now >= self.until {
            return None;
        }
        match self.next {
            None => {
                self.begin(scene);
                self.next = Some(later(now, self.chance.millis(0, FIRST_TICK_WITHIN)));
            }
            Some(at) if at <= now => {
                self.tick(scene, now);
                self.is_first_tick = false;
                self.next = Some(later(now, TICK));
            }
            Some(_) => {}
        }
        self.next
    }
}

/// Ends a life, and says so.
pub fn crash(scene: &Scene, victim: &Incarnation, kind: FaultKind) {
    scene.hub.note("", format!("fault: {} {} crashes", kind.id(), victim.tag));
    scene.hub.count_fault(kind, None);
    victim.crash();
}

/// Forgets all history: every watch has to list anew.
pub fn expire_history(scene: &Scene) {
    // One more revision, so that even a watch that has seen everything has to.
    let marker = serde_json::json!({
        "metadata": { "name": "history-ends", "namespace": "default" },
    });
    scene.create("etcd", "", "configmaps", marker);
    scene.delete("etcd", ("", "configmaps"), ("default", "history-ends"), serde_json::Value::Null);
    scene.server.compact(scene.server.revision());
    scene.server.end_watches(|_| true);
}

/// Comes between effects and their records at random.
#[derive(Debug)]
pub struct StormyEffects {
    pub hub: Arc<Hub>,
    pub chance: Chance,
    pub rate: f64,
    pub until: Timestamp,
}

impl Interference for StormyEffects {
    fn on_effect(&mut self, effect: &Effect) -> EffectFate {
        if self.hub.clock.now() >= self.until || !self.chance.hits(self.rate) {
            return EffectFate::Pass;
        }
        let fate = match (effect.place, self.chance.below(5)) {
            (_, 0) => EffectFate::CrashBefore,
            (_, 1 | 2) => EffectFate::CrashAfter,
            (Place::Cloud, 3) => EffectFate::Delay(self.chance.seconds(1, 28)),
            (_, _) => EffectFate::LoseAnswer,
        };
        if effect.what == "RunInstances" && fate == EffectFate::CrashAfter {
            self.hub.sometimes("a crash between a launch and its record");
        }
        self.hub.count_fault(
            FaultKind::F30,
            Some(&effect.target).filter(|it| !it.is_empty()).map(String::as_str),
        );
        fate
    }
}
