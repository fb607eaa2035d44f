//! A view over a cloud that a test scripts.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_core::cloud::InstanceState;
use machinist_providers::{InstanceSize, LaunchRequest, PreparedLaunch, ScheduledEvent};

use super::*;

/// Holds instances, counts calls, and can fail its lists. A mock, because what is tested is when
/// the view asks, not what a cloud answers; the provider contract suite tests that.
#[derive(Default)]
struct ScriptedCloud {
    instances: Mutex<BTreeMap<InstanceId, Instance>>,
    fails: Mutex<bool>,
    lists: AtomicUsize,
    describes: AtomicUsize,
}

impl ScriptedCloud {
    fn put(&self, id: &str, uid: &str, state: InstanceState) -> Instance {
        let instance = Instance {
            id: InstanceId(id.to_owned()),
            provider_id: format!("aws:///z/{id}"),
            state,
            state_reason: String::new(),
            region: String::new(),
            zone: String::new(),
            instance_type: String::new(),
            launched_at: None,
            client_token: None,
            interruptible: false,
            tags: BTreeMap::from([("machinist.dev/machine-uid".to_owned(), uid.to_owned())]),
            addresses: Vec::new(),
        };
        self.instances.lock().unwrap().insert(instance.id.clone(), instance.clone());
        instance
    }
}

fn not_scripted<T>() -> Result<T, ProviderError> {
    Err(ProviderError::new(ErrorClass::Unknown, "not scripted"))
}

#[async_trait]
impl Provider for ScriptedCloud {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn list(&self, _: &str) -> Result<Vec<Instance>, ProviderError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        if *self.fails.lock().unwrap() {
            return Err(ProviderError::new(ErrorClass::Throttled, "slow down"));
        }
        Ok(self.instances.lock().unwrap().values().cloned().collect())
    }

    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        self.describes.fetch_add(1, Ordering::Relaxed);
        let instances = self.instances.lock().unwrap();
        Ok(ids.iter().filter_map(|id| instances.get(id).cloned()).collect())
    }

    async fn find(&self, _: &str, _: &[String]) -> Result<Vec<Instance>, ProviderError> {
        not_scripted()
    }

    async fn prepare(&self, _: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        not_scripted()
    }

    async fn launch(&self, _: &PreparedLaunch, _: &str) -> Result<Instance, ProviderError> {
        not_scripted()
    }

    async fn terminate(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn tag(&self, _: &InstanceId, _: &BTreeMap<String, String>) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn start(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn stop(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn reboot(&self, _: &InstanceId) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn scheduled_events(&self, _: &str) -> Result<Vec<ScheduledEvent>, ProviderError> {
        not_scripted()
    }

    async fn move_event(&self, _: &InstanceId, _: &str, _: Timestamp) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        not_scripted()
    }
}

struct Bench {
    cloud: Arc<ScriptedCloud>,
    view: CloudView,
    news: Arc<Mutex<Vec<News>>>,
    env: Env,
}

impl Bench {
    /// A view whose task runs beside the test.
    fn start(cloud: ScriptedCloud) -> Self {
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
        let cloud = Arc::new(cloud);
        let news = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&news);
        let timings = ViewTimings {
            list_period: Duration::from_secs(30),
            first_look: Duration::from_secs(2),
            launch_visibility: Duration::from_secs(60),
        };
        let view = CloudView::new(
            "demo",
            Arc::clone(&cloud) as Arc<dyn Provider>,
            &env,
            timings,
            Arc::new(move |one| heard.lock().unwrap().push(one.clone())),
        );
        Self { cloud, view, news, env }
    }

    async fn run_for(&self, duration: Duration) {
        // The view's task lives only here, and its state in the view.
        tokio::select! {
            biased;
            _ = self.view.clone().run() => {}
            () = self.env.sleep(duration) => {}
        }
    }

    fn heard(&self) -> Vec<News> {
        std::mem::take(&mut *self.news.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_concerns_everybody_even_those_it_does_not_mention() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    let bench = Bench::start(cloud);
    bench.run_for(Duration::from_secs(1)).await;
    assert_eq!(bench.heard(), [News::ForEverybody]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_first_list_is_told_and_repeated() {
    let cloud = ScriptedCloud::default();
    *cloud.fails.lock().unwrap() = true;
    let bench = Bench::start(cloud);
    bench.run_for(Duration::from_secs(1)).await;
    assert_eq!(bench.heard(), [News::ForEverybody]);
    assert!(bench.view.snapshot().listed_at.is_none());
    assert_eq!(bench.view.snapshot().failure.as_ref().unwrap().class, ErrorClass::Throttled);
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_cloud_costs_one_list_a_period_and_wakes_nobody() {
    let cloud = ScriptedCloud::default();
    for index in 0..100 {
        cloud.put(&format!("i-{index}"), &format!("uid-{index}"), InstanceState::Running);
    }
    let bench = Bench::start(cloud);
    bench.run_for(Duration::from_secs(300)).await;
    assert_eq!(bench.heard(), [News::ForEverybody]);
    let lists = bench.cloud.lists.load(Ordering::Relaxed);
    assert!((10..=12).contains(&lists), "{lists} lists in ten periods");
    assert_eq!(bench.cloud.describes.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_changing_instance_is_looked_at_closely_and_then_left_alone() {
    let bench = Bench::start(ScriptedCloud::default());
    let pending = bench.cloud.put("i-1", "uid-1", InstanceState::Pending);
    bench.view.learn(pending);
    bench.run_for(Duration::from_secs(5)).await;
    bench.heard();
    bench.cloud.put("i-1", "uid-1", InstanceState::Running);
    bench.run_for(Duration::from_secs(8)).await;
    let changed = Changed {
        ids: BTreeSet::from([InstanceId("i-1".into())]),
        uids: BTreeSet::from(["uid-1".into()]),
    };
    assert!(bench.heard().contains(&News::About(changed)));
    let looks = bench.cloud.describes.load(Ordering::Relaxed);
    bench.run_for(Duration::from_secs(20)).await;
    assert_eq!(bench.cloud.describes.load(Ordering::Relaxed), looks, "settled");
}

#[tokio::test(start_paused = true)]
async fn questions_of_many_share_one_call() {
    let cloud = ScriptedCloud::default();
    for index in 0..50 {
        cloud.put(&format!("i-{index}"), "uid", InstanceState::Running);
    }
    let bench = Bench::start(cloud);
    let ask = |index: usize| bench.view.confirm(BTreeSet::from([InstanceId(format!("i-{index}"))]));
    let questions = futures::future::join_all((0..51).map(ask));
    let answers = tokio::select! {
        biased;
        _ = bench.view.clone().run() => unreachable!("the view runs for ever"),
        answers = questions => answers,
    };
    assert_eq!(bench.cloud.describes.load(Ordering::Relaxed), 1);
    assert_eq!(answers[7].as_ref().unwrap()[0].id.0, "i-7");
    assert!(answers[50].as_ref().unwrap().is_empty(), "unknown to the cloud");
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_no_read_shows_yet_is_kept_for_a_while() {
    let bench = Bench::start(ScriptedCloud::default());
    let invisible = bench.cloud.put("i-1", "uid-1", InstanceState::Pending);
    bench.cloud.instances.lock().unwrap().clear();
    let id = invisible.id.clone();
    bench.view.learn(invisible);
    bench.run_for(Duration::from_secs(40)).await;
    assert!(bench.view.snapshot().get(&id).is_some(), "lists and looks may lag");
    bench.run_for(Duration::from_secs(60)).await;
    assert!(bench.view.snapshot().get(&id).is_none(), "past that it is not there");
}
