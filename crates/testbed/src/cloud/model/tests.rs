//! Does the model behave as EC2 does? Tables and properties, by question.

mod authorization;
mod breakpoints;
mod describing;
mod events;
mod fates;
mod faults;
mod hosts;
mod launching;
mod lifecycle;
mod load_balancers;
mod metadata;
mod properties;
mod reads;

use super::*;

/// A cloud with a hand to turn its clock.
pub struct Bench {
    pub cloud: Cloud,
    pub now: Timestamp,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(CloudConfig::fast())
    }

    pub fn with(config: CloudConfig) -> Self {
        Self { cloud: Cloud::new(config, 7), now: "2026-06-01T12:00:00Z".parse().expect("a time") }
    }

    pub fn wait(&mut self, duration: SignedDuration) {
        self.now = time::later(self.now, duration);
        self.cloud.advance(self.now);
    }

    pub fn seconds(&mut self, seconds: i64) {
        self.wait(SignedDuration::from_secs(seconds));
    }

    pub fn call(&mut self, request: Request) -> Outcome {
        self.cloud.call(self.now, &Caller::default(), request)
    }

    pub fn world(&self) -> WorldIds {
        self.cloud.world().ids().clone()
    }

    pub fn launch_parameters(&self) -> RunInstances {
        let world = self.world();
        RunInstances {
            image_id: world.images.get("x86_64").cloned(),
            instance_type: Some("m5.large".into()),
            min_count: 1,
            max_count: 1,
            subnet_id: world.private_subnets.get("us-east-1a").cloned(),
            security_group_ids: vec![world.worker_security_group],
            ..RunInstances::default()
        }
    }

    pub fn try_launch(&mut self, parameters: RunInstances) -> Result<Vec<Instance>, Ec2Error> {
        match self.call(Request::RunInstances(parameters.into())).result? {
            Response::Launched(reservation) => Ok(reservation.instances),
            other => panic!("RunInstances answered {other:?}"),
        }
    }

    /// Launches one instance and waits until it runs.
    pub fn launch_running(&mut self) -> String {
        let parameters = self.launch_parameters();
        self.launch_running_with(parameters)
    }

    pub fn launch_running_with(&mut self, parameters: RunInstances) -> String {
        let id = self.try_launch(parameters).expect("a launch")[0].id.clone();
        self.seconds(2);
        assert_eq!(self.instance(&id).state, InstanceState::Running);
        id
    }

    pub fn instance(&self, id: &str) -> &Instance {
        &self.cloud.instances[id]
    }

    pub fn describe(&mut self, request: DescribeInstances) -> Result<Vec<String>, Ec2Error> {
        match self.call(Request::DescribeInstances(request)).result? {
            Response::Instances(page) => Ok(page
                .items
                .into_iter()
                .flat_map(|reservation| reservation.instances)
                .map(|instance| instance.id)
                .collect()),
            other => panic!("DescribeInstances answered {other:?}"),
        }
    }

    pub fn status(&mut self, id: &str) -> InstanceStatus {
        let request = DescribeInstanceStatus {
            instance_ids: vec![id.into()],
            include_all_instances: true,
            ..DescribeInstanceStatus::default()
        };
        match self.call(Request::DescribeInstanceStatus(request)).result {
            Ok(Response::InstanceStatuses(page)) => page.items[0].clone(),
            other => panic!("DescribeInstanceStatus answered {other:?}"),
        }
    }
}

pub fn ids(ids: &[&str]) -> InstanceIds {
    InstanceIds { instance_ids: ids.iter().map(|id| (*id).into()).collect(), dry_run: false }
}

pub fn filter(name: &str, values: &[&str]) -> Filter {
    Filter { name: name.into(), values: values.iter().map(|value| (*value).into()).collect() }
}

pub fn code<T: std::fmt::Debug>(result: Result<T, Ec2Error>) -> String {
    result.expect_err("a refusal").code
}
