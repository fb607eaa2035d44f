//! What will AWS do to our instances, and when?

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{EventCode, InstanceStatusEvent};
use aws_smithy_types::DateTime;
use jiff::Timestamp;
use machinist_core::cloud::InstanceId;

use super::{
    client::AwsProvider,
    errors::Attempt,
    instances::{PAGES_MAX, endless, filter, timestamp},
};
use crate::{ProviderError, ScheduledEvent};

impl AwsProvider {
    /// Statuses cannot be asked for by tag. Asked for by event code, only the few instances with an
    /// event come back, and only those are described: the cost does not grow with the fleet.
    pub(super) async fn list_scheduled_events(
        &self,
        cluster_id: &str,
    ) -> Result<Vec<ScheduledEvent>, ProviderError> {
        let events = self.account_events().await?;
        let with_events: BTreeSet<_> = events.iter().map(|event| event.instance.clone()).collect();
        let with_events: Vec<_> = with_events.into_iter().collect();
        let ours: BTreeSet<_> = self
            .describe_instances(&with_events)
            .await?
            .into_iter()
            .filter(|instance| instance.is_owned_by_cluster(cluster_id))
            .map(|instance| instance.id)
            .collect();
        let mut events: Vec<_> =
            events.into_iter().filter(|event| ours.contains(&event.instance)).collect();
        events.sort_by(|left, right| (&left.instance, &left.id).cmp(&(&right.instance, &right.id)));
        events.dedup();
        Ok(events)
    }

    pub(super) async fn move_scheduled_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        let what = format!("move event {event_id} of instance {id} to {not_before}");
        let attempt = Attempt::on_instances("ModifyInstanceEventStartTime", what);
        let call = self
            .ec2
            .client
            .modify_instance_event_start_time()
            .instance_id(&id.0)
            .instance_event_id(event_id)
            .not_before(DateTime::from_secs(not_before.as_second()));
        self.ec2.call(&attempt, call.send()).await.map(|_| ())
    }

    async fn account_events(&self) -> Result<Vec<ScheduledEvent>, ProviderError> {
        let attempt = Attempt::on_instances("DescribeInstanceStatus", "list the scheduled events");
        let mut events = Vec::new();
        let mut next_token = None;
        for _ in 0..PAGES_MAX {
            let call = self
                .ec2
                .client
                .describe_instance_status()
                // A stopped instance can have an event too.
                .include_all_instances(true)
                .filters(filter("event.code", EventCode::values().iter().copied()))
                .max_results(self.ec2.page_size)
                .set_next_token(next_token);
            let page = self.ec2.call(&attempt, call.send()).await?;
            for status in page.instance_statuses() {
                let Some(id) = status.instance_id() else { continue };
                let id = InstanceId(id.to_owned());
                events.extend(status.events().iter().map(|event| translate(&id, event)));
            }
            next_token = page.next_token.filter(|token| !token.is_empty());
            if next_token.is_none() {
                return Ok(events);
            }
        }
        Err(endless(&attempt))
    }
}

fn translate(instance: &InstanceId, event: &InstanceStatusEvent) -> ScheduledEvent {
    ScheduledEvent {
        id: event.instance_event_id().unwrap_or_default().to_owned(),
        instance: instance.clone(),
        code: event.code().map_or_else(String::new, |code| code.as_str().to_owned()),
        description: event.description().unwrap_or_default().to_owned(),
        not_before: event.not_before().and_then(timestamp),
        not_after: event.not_after().and_then(timestamp),
        not_before_deadline: event.not_before_deadline().and_then(timestamp),
    }
}
