//! How is a script played? Step after step, on a world that runs by itself.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_saphyr::Spanned;
use tokio::time::Instant;

use super::{
    Script,
    aim::Aims,
    expectation::Expectation,
    step::{Step, Until},
    values::MachineName,
    way::{Obstacles, Way},
    witness::{MachineSeen, Witness},
};
use crate::{
    actors::{Disturbance, Scene, Strangers},
    chance::Chance,
    effects::Interference,
    faults::api::ApiFaults,
    world::World,
};

/// How often something that is waited for is looked at, at first and later.
const CLOSE_LOOK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);
/// For how long one looks closely.
const CLOSE: Duration = Duration::from_secs(120);

/// A world with a script on it.
pub(super) struct Stage<'a> {
    pub(super) world: &'a World,
    witness: Witness,
    aims: Aims,
    obstacles: Obstacles,
    /// From when on things are counted.
    mark: Cell<Option<Timestamp>>,
    pub(super) strangers: RefCell<(Strangers, Chance)>,
}

/// Plays all steps. What is not as expected is a broken promise, and the end.
pub(super) async fn play(world: &World, script: &Script, beyond: Box<dyn Interference>) {
    let stage = Stage::set_up(world, script, beyond);
    let hub = &world.scene.hub;
    for (index, step) in script.steps.iter().enumerate() {
        let at = position(index, step);
        hub.note("", format!("script: {at}: {}", words(script, index)));
        if let Err(words) = stage.play(&step.value).await {
            hub.violate("EXPECT", "", format!("{at}: {words}"));
        }
        if hub.judge().verdict().is_some() {
            return;
        }
    }
}

impl<'a> Stage<'a> {
    fn set_up(world: &'a World, script: &Script, beyond: Box<dyn Interference>) -> Self {
        let scene = &world.scene;
        let witness = Witness::of(scene);
        let aims = Aims::new(scene.hub.clock, witness.clone(), beyond);
        let obstacles = Obstacles::default();
        let plan = &world.plan;
        let usual = ApiFaults {
            hub: Arc::clone(&scene.hub),
            chance: Chance::stream(plan.seed, "script"),
            rates: plan.rates.clone(),
            outages: world.outages(),
            latency_max: plan.api_latency_max,
            until: Timestamp::MAX,
            tells: plan.tells_requests,
        };
        scene.server.set_faults(Way { usual, obstacles: obstacles.clone() });
        scene.hub.interfere(aims.clone());
        // Without weather all guests recover at once, whatever befalls them.
        scene.hub.weather().disturbance = Some(Disturbance::default());
        for (group, plural, object) in script.world.objects(&world.ids) {
            scene.create("installer", group, plural, object);
        }
        let strangers = (Strangers::default(), Chance::stream(plan.seed, "strangers"));
        Self {
            world,
            witness,
            aims,
            obstacles,
            mark: Cell::new(None),
            strangers: RefCell::new(strangers),
        }
    }

    async fn play(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Wait(span) => tokio::time::sleep(span.0).await,
            Step::Until(until) => self.wait_until(until).await?,
            Step::Expect(all) => self.check_all(all)?,
            Step::Mark => {
                // What happened up to now happened before.
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.mark.set(Some(self.now()));
            }
            Step::Calm => self.calm(),
            Step::Rest => self.world.settle_and_rest().await,
            Step::Settle => {
                self.calm();
                self.world.settle_and_rest().await;
            }
            Step::Repeat { times, steps } => {
                for _ in 0..*times {
                    for step in steps {
                        Box::pin(self.play(step)).await?;
                    }
                }
            }
            Step::Recreate(name) => self.recreate(name).await?,
            other => {
                self.act(other)?;
                // Whoever lives in the cluster looks at what was done.
                self.scene().hub.changed.notify_one();
            }
        }
        Ok(())
    }

    /// Ends what the script brought; whoever else interferes goes on, or the effects of the end
    /// would be out of their reach.
    fn calm(&self) {
        self.aims.clear();
        self.obstacles.clear();
        self.world.calm_down();
        self.scene().hub.interfere(self.aims.clone());
    }

    async fn wait_until(&self, until: &Until) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let Err(words) = self.check_all(&until.all) else { return Ok(()) };
            let waited = begun.elapsed();
            if waited >= until.within.0 {
                return Err(format!("not within {:?}: {words}", until.within.0));
            }
            let pause = if waited < CLOSE { CLOSE_LOOK } else { LOOK };
            tokio::time::sleep(pause).await;
        }
    }

    fn check_all(&self, all: &[Expectation]) -> Result<(), String> {
        all.iter().try_for_each(|one| self.check(one))
    }

    pub(super) fn scene(&self) -> &Scene {
        &self.world.scene
    }

    pub(super) const fn witness(&self) -> &Witness {
        &self.witness
    }

    pub(super) const fn aims(&self) -> &Aims {
        &self.aims
    }

    pub(super) const fn obstacles(&self) -> &Obstacles {
        &self.obstacles
    }

    pub(super) fn now(&self) -> Timestamp {
        self.scene().hub.clock.now()
    }

    /// Whether what happened then is counted.
    pub(super) fn is_counted(&self, at: Timestamp) -> bool {
        self.mark.get().is_none_or(|mark| at >= mark)
    }

    /// The Machine that a script names.
    pub(super) fn named(&self, name: &MachineName) -> Result<MachineSeen, String> {
        self.witness.machine(name).ok_or_else(|| format!("there was never a machine {name}"))
    }
}

fn position(index: usize, step: &Spanned<Step>) -> String {
    format!("step {} (line {})", index + 1, step.referenced.line())
}

/// A step as it is written, on one line of the timeline.
fn words(script: &Script, index: usize) -> String {
    let line = |index: usize| {
        let step = script.steps.get(index)?;
        usize::try_from(step.referenced.line()).ok()
    };
    let first = line(index).unwrap_or_default().saturating_sub(1);
    let end = line(index + 1).map_or(script.lines.len(), |next| next.saturating_sub(1));
    let lines = script.lines.get(first..end.max(first)).unwrap_or_default();
    let lines = lines.iter().map(|line| line.trim()).filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join(" ")
}
