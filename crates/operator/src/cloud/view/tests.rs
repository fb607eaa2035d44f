//! A view over a cloud that a test scripts.

use std::{
    collections::BTreeSet,
    sync::{Mutex, atomic::Ordering},
};

use machinist_core::{cloud::InstanceState, machine::HealthKnowledge};
use machinist_providers::Pacer;

use super::*;
use crate::cloud::{
    pace::Pace,
    snapshot::Reports,
    testing::{ScriptedCloud, forbidden, id, impaired},
};

struct Bench {
    cloud: Arc<ScriptedCloud>,
    view: CloudView,
    news: Arc<Mutex<Vec<News>>>,
    env: Env,
    pace: Arc<Pace>,
}

impl Bench {
    /// A view whose task runs beside the test.
    fn start(cloud: ScriptedCloud) -> Self {
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
        let cloud = Arc::new(cloud);
        let news = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&news);
        let pace = Arc::new(Pace::new(&env));
        let view = CloudView::new(
            "demo",
            Arc::clone(&cloud) as Arc<dyn Provider>,
            &pace,
            &env,
            ViewTimings::default(),
            Arc::new(move |one| heard.lock().unwrap().push(one.clone())),
        );
        Self { cloud, view, news, env, pace }
    }

    async fn run_for(&self, duration: Duration) {
        // The view's task lives only here, and its state in the view.
        self.beside(self.env.sleep(duration)).await;
    }

    /// Runs the view until something else is done.
    async fn beside<T>(&self, other: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            _ = self.view.clone().run() => unreachable!("the view runs for ever"),
            done = other => done,
        }
    }

    fn heard(&self) -> Vec<News> {
        std::mem::take(&mut *self.news.lock().unwrap())
    }

    fn about(&self, id: &str, uid: &str) -> News {
        News::About(Changed {
            ids: BTreeSet::from([InstanceId(id.into())]),
            uids: BTreeSet::from([uid.into()]),
        })
    }
}

fn slow_down() -> ProviderError {
    ProviderError::new(ErrorClass::Throttled, "slow down")
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_concerns_everybody_even_those_it_does_not_mention() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    let bench = Bench::start(cloud);
    bench.beside(bench.view.fresh_within(Duration::ZERO)).await.unwrap();
    assert_eq!(bench.heard().first(), Some(&News::ForEverybody));
}

#[tokio::test(start_paused = true)]
async fn a_failed_first_list_is_told_and_repeated() {
    let cloud = ScriptedCloud::default();
    cloud.fail_lists(Some(slow_down()));
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
    assert_eq!(bench.heard(), [News::ForEverybody, News::ForEverybody], "the list, the checks");
    let lists = bench.cloud.lists();
    assert!((10..=12).contains(&lists), "{lists} lists in ten periods");
    let reports = bench.cloud.reports_asked.load(Ordering::Relaxed);
    assert!((5..=6).contains(&reports), "{reports} reports in five periods");
    assert_eq!(bench.cloud.describes(), 0);
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
    assert!(bench.heard().contains(&bench.about("i-1", "uid-1")));
    let looks = bench.cloud.describes();
    bench.run_for(Duration::from_secs(20)).await;
    assert_eq!(bench.cloud.describes(), looks, "settled");
}

#[tokio::test(start_paused = true)]
async fn what_a_list_shows_is_not_looked_at_once_more() {
    let bench = Bench::start(ScriptedCloud::default());
    let pending = bench.cloud.put("i-1", "uid-1", InstanceState::Pending);
    bench.run_for(Duration::from_secs(1)).await;
    bench.view.learn(pending);
    bench.cloud.put("i-1", "uid-1", InstanceState::Running);
    // Demanded a moment before the first look is due.
    bench.run_for(Duration::from_millis(1500)).await;
    bench.beside(bench.view.fresh_within(Duration::ZERO)).await.unwrap();
    bench.run_for(Duration::from_secs(20)).await;
    assert_eq!(bench.cloud.describes(), 0, "the list has shown that it runs");
}

#[tokio::test(start_paused = true)]
async fn a_list_begun_before_an_action_does_not_stand_for_the_look_after_it() {
    let bench = Bench::start(ScriptedCloud::default());
    bench.cloud.put("i-1", "uid-1", InstanceState::Running);
    bench.run_for(Duration::from_secs(5)).await;
    *bench.cloud.list_takes.lock().unwrap() = Duration::from_secs(2);
    let stop = async {
        bench.env.sleep(Duration::from_millis(200)).await;
        bench.cloud.put("i-1", "uid-1", InstanceState::Stopped);
        bench.view.watch_closely(id("i-1"));
        bench.env.sleep(Duration::from_secs(4)).await;
    };
    let list = bench.view.fresh_within(Duration::ZERO);
    bench.beside(futures::future::join(list, stop)).await.0.unwrap();
    let snapshot = bench.view.snapshot();
    let shown = snapshot.get(&id("i-1")).map(|instance| instance.state);
    assert_eq!(shown, Some(InstanceState::Stopped), "seconds after it was acted on");
    assert_eq!(bench.cloud.lists(), 2, "the look has shown it, not another list");
}

#[tokio::test(start_paused = true)]
async fn questions_of_many_share_one_call() {
    let cloud = ScriptedCloud::default();
    for index in 0..50 {
        cloud.put(&format!("i-{index}"), "uid", InstanceState::Running);
    }
    let bench = Bench::start(cloud);
    let ask = |index: usize| bench.view.confirm(BTreeSet::from([id(&format!("i-{index}"))]));
    let answers = bench.beside(futures::future::join_all((0..51).map(ask))).await;
    assert_eq!(bench.cloud.describes(), 1);
    assert_eq!(answers[7].as_ref().unwrap()[0].id.0, "i-7");
    assert!(answers[50].as_ref().unwrap().is_empty(), "unknown to the cloud");
}

#[tokio::test(start_paused = true)]
async fn looks_at_many_launches_share_calls() {
    let bench = Bench::start(ScriptedCloud::default());
    let launches = async {
        for index in 0..300 {
            let name = format!("i-{index}");
            bench.view.learn(bench.cloud.put(&name, &name, InstanceState::Pending));
            bench.env.sleep(Duration::from_millis(50)).await;
            let started = index.max(100) - 100;
            bench.cloud.put(&format!("i-{started}"), &name, InstanceState::Running);
        }
    };
    bench.beside(launches).await;
    let looks = bench.cloud.describes();
    assert!(looks <= 8, "{looks} calls for 300 launches in fifteen seconds");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_refuses_calls_is_looked_at_seldom_and_asked_as_before() {
    let bench = Bench::start(ScriptedCloud::default());
    bench.pace.learn("RunInstances", Some(ErrorClass::Throttled));
    let launches = async {
        for index in 0..120 {
            let name = format!("i-{index}");
            bench.view.learn(bench.cloud.put(&name, &name, InstanceState::Pending));
            bench.env.sleep(Duration::from_millis(500)).await;
        }
    };
    bench.beside(launches).await;
    let looks = bench.cloud.describes();
    assert!((2..=4).contains(&looks), "{looks} calls for 120 launches in a minute");
    let asked = bench.env.instant();
    bench.beside(bench.view.confirm(BTreeSet::from([id("i-1")]))).await.unwrap();
    assert!(bench.env.instant() - asked <= Duration::from_secs(1), "before something is destroyed");
}

#[tokio::test(start_paused = true)]
async fn questions_that_follow_each_other_share_a_beat() {
    let cloud = ScriptedCloud::default();
    for index in 0..100 {
        cloud.put(&format!("i-{index}"), "uid", InstanceState::Running);
    }
    let bench = Bench::start(cloud);
    let ask = async |index: u64| {
        bench.env.sleep(Duration::from_millis(60 * index)).await;
        bench.view.confirm(BTreeSet::from([id(&format!("i-{index}"))])).await
    };
    let answers = bench.beside(futures::future::join_all((0..100).map(ask))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|found| found.len() == 1)));
    let calls = bench.cloud.describes();
    assert!(calls <= 14, "{calls} calls for 100 questions in six seconds");
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

#[tokio::test(start_paused = true)]
async fn a_list_can_be_demanded_that_is_young_enough() {
    let bench = Bench::start(ScriptedCloud::default());
    bench.run_for(Duration::from_secs(5)).await;
    assert_eq!(bench.cloud.lists(), 1);
    let scenario = async {
        bench.env.sleep(Duration::from_secs(10)).await;
        let lists = bench.cloud.lists();
        let old = bench.view.fresh_within(Duration::from_secs(11)).await.unwrap();
        assert_eq!(bench.cloud.lists(), lists, "the one there is will do");
        let many = (0..20).map(|_| bench.view.fresh_within(Duration::from_secs(1)));
        for young in futures::future::join_all(many).await {
            let young = young.unwrap();
            assert!(young.age(bench.env.instant()).unwrap() <= Duration::from_secs(1));
            assert!(young.listed_at > old.listed_at);
        }
        assert_eq!(bench.cloud.lists(), lists + 1, "one for all who ask");
    };
    bench.beside(scenario).await;
}

#[tokio::test(start_paused = true)]
async fn a_demand_fails_with_the_list_and_recovers_with_it() {
    let bench = Bench::start(ScriptedCloud::default());
    let scenario = async {
        bench.view.fresh_within(Duration::ZERO).await.unwrap();
        bench.env.sleep(Duration::from_secs(5)).await;
        bench.heard();
        bench.cloud.fail_lists(Some(slow_down()));
        let failure = bench.view.fresh_within(Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Throttled);
        let lists = bench.cloud.lists();
        for _ in 0..100 {
            bench.view.fresh_within(Duration::from_secs(1)).await.unwrap_err();
        }
        assert_eq!(bench.cloud.lists(), lists, "a failure a moment ago is an answer");
        assert_eq!(bench.heard(), [], "the picture is kept");
        bench.cloud.fail_lists(None);
        bench.env.sleep(Duration::from_secs(10)).await;
        assert_eq!(bench.heard(), [News::ForEverybody], "reachable again");
        assert!(bench.view.snapshot().failure.is_none());
    };
    bench.beside(scenario).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_wakes_the_machine_it_is_about_and_strangers_are_left_out() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    let bench = Bench::start(cloud);
    let scenario = async {
        bench.env.sleep(Duration::from_secs(5)).await;
        let health = |of: &str| bench.view.snapshot().health_of(&id(of));
        let well = HealthKnowledge::Known { impairments: vec![], interruption: None };
        assert_eq!(health("i-1"), well);
        bench.heard();
        bench.cloud.report(Ok(vec![impaired("i-1"), impaired("i-stranger")]));
        bench.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.heard(), [bench.about("i-1", "uid-1")]);
        assert!(bench.view.snapshot().report_of(&id("i-1")).is_some());
        assert!(bench.view.snapshot().report_of(&id("i-stranger")).is_none());
        assert_ne!(health("i-1"), well);
        bench.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.heard(), [], "the same report again");
        bench.cloud.report(Ok(vec![]));
        bench.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.heard(), [bench.about("i-1", "uid-1")]);
        assert_eq!(health("i-1"), well);
    };
    bench.beside(scenario).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_there_are_no_reports_and_everything_else_goes_on() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    cloud.report(Err(forbidden("ec2:DescribeInstanceStatus")));
    let bench = Bench::start(cloud);
    let scenario = async {
        bench.env.sleep(Duration::from_secs(300)).await;
        let permission = "ec2:DescribeInstanceStatus".to_owned();
        assert_eq!(bench.view.snapshot().reports, Reports::Missing { permission });
        assert_eq!(bench.cloud.reports_asked.load(Ordering::Relaxed), 1);
        assert!(bench.cloud.lists() >= 10);
        let health = bench.view.snapshot().health_of(&id("i-1"));
        assert!(matches!(&health, HealthKnowledge::Unknown(why) if why.contains("ec2:Desc")));
        bench.cloud.report(Ok(vec![impaired("i-1")]));
        bench.env.sleep(Duration::from_secs(400)).await;
        assert!(bench.view.snapshot().report_of(&id("i-1")).is_some(), "granted meanwhile");
    };
    bench.beside(scenario).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_that_fails_once_changes_nothing_and_three_times_does() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    cloud.report(Ok(vec![impaired("i-1")]));
    let bench = Bench::start(cloud);
    let scenario = async {
        bench.env.sleep(Duration::from_secs(5)).await;
        bench.cloud.report(Err(slow_down()));
        bench.env.sleep(Duration::from_secs(60)).await;
        assert!(bench.view.snapshot().report_of(&id("i-1")).is_some());
        bench.env.sleep(Duration::from_secs(120)).await;
        let message = "slow down".to_owned();
        assert_eq!(bench.view.snapshot().reports, Reports::Failed { message });
    };
    bench.beside(scenario).await;
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_known_until_the_instance_is_gone() {
    let cloud = ScriptedCloud::default();
    cloud.put("i-1", "uid-1", InstanceState::Running);
    cloud.report(Err(forbidden("ec2:DescribeInstanceStatus")));
    let bench = Bench::start(cloud);
    let scenario = async {
        bench.env.sleep(Duration::from_secs(5)).await;
        bench.heard();
        let at = Timestamp::UNIX_EPOCH;
        bench.view.interrupt(&id("i-stranger"), at);
        assert_eq!(bench.heard(), []);
        bench.view.interrupt(&id("i-1"), at);
        bench.view.interrupt(&id("i-1"), bench.env.now());
        assert_eq!(bench.heard(), [bench.about("i-1", "uid-1")]);
        let health = HealthKnowledge::Known { impairments: vec![], interruption: Some(at) };
        assert_eq!(bench.view.snapshot().health_of(&id("i-1")), health);
        bench.cloud.put("i-1", "uid-1", InstanceState::Terminated);
        bench.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.view.snapshot().spot_notice_of(&id("i-1")), None);
    };
    bench.beside(scenario).await;
}
