//! Which instances does AWS itself call impaired, and what will it do to which, and when?

use std::collections::BTreeMap;

use aws_sdk_ec2::{
    operation::describe_instance_status::DescribeInstanceStatusOutput,
    types::{
        InstanceRebootMigrationState, InstanceStatus, InstanceStatusEvent, InstanceStatusSummary,
        SummaryStatus,
    },
};
use aws_smithy_types::DateTime;
use jiff::Timestamp;
use machinist_core::cloud::{Impairment, InstanceId, InstanceReport, ScheduledEvent};

use super::{
    actions::Action,
    client::AwsProvider,
    errors::Attempt,
    instances::{PAGES_MAX, endless, timestamp},
};
use crate::ProviderError;

impl AwsProvider {
    /// Every instance of the account, page by page. A status cannot be asked for by tag, and a filter on
    /// events is not trusted: of the stand-ins for EC2 one answers it with every instance and another with
    /// none. A page holds a thousand.
    pub(super) async fn list_reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        let mut reports = BTreeMap::new();
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let (page, next_token) = self.status_page(token).await?;
            collect(&page, &mut reports);
            token = next_token;
            if token.is_none() {
                return Ok(reports.into_values().collect());
            }
        }
        Err(endless(&status_attempt()))
    }

    pub(super) async fn move_scheduled_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        let what = format!("move event {event_id} of instance {id} to {not_before}");
        let attempt = Attempt::on_instances(Action::ModifyInstanceEventStartTime, what);
        let call = self
            .cloud
            .ec2
            .modify_instance_event_start_time()
            .instance_id(&id.0)
            .instance_event_id(event_id)
            .not_before(DateTime::from_secs(not_before.as_second()));
        self.cloud.call(&attempt, call.send()).await.map(|_| ())
    }

    pub(super) async fn let_reboots_migrate(&self, id: &InstanceId) -> Result<(), ProviderError> {
        let what = format!("let reboots of instance {id} move it to another host");
        let attempt = Attempt::on_instances(Action::ModifyInstanceMaintenanceOptions, what);
        let call = self
            .cloud
            .ec2
            .modify_instance_maintenance_options()
            .instance_id(&id.0)
            .reboot_migration(InstanceRebootMigrationState::Default);
        self.cloud.call(&attempt, call.send()).await.map(|_| ())
    }

    async fn status_page(
        &self,
        token: Option<String>,
    ) -> Result<(DescribeInstanceStatusOutput, Option<String>), ProviderError> {
        let call = self
            .cloud
            .ec2
            .describe_instance_status()
            // A stopped instance can have an event too.
            .include_all_instances(true)
            .max_results(self.cloud.page_size)
            .set_next_token(token);
        let mut page = self.cloud.call(&status_attempt(), call.send()).await?;
        let next_token = page.next_token.take().filter(|token| !token.is_empty());
        Ok((page, next_token))
    }
}

fn status_attempt() -> Attempt {
    Attempt::on_instances(Action::DescribeInstanceStatus, "list the instances' checks and events")
}

/// Adds the troubled instances of a page.
fn collect(
    page: &DescribeInstanceStatusOutput,
    reports: &mut BTreeMap<InstanceId, InstanceReport>,
) {
    for status in page.instance_statuses() {
        if let Some(report) = translate(status) {
            reports.insert(report.instance.clone(), report);
        }
    }
}

/// The report of one instance; none when all is well.
fn translate(status: &InstanceStatus) -> Option<InstanceReport> {
    let instance = InstanceId(status.instance_id()?.to_owned());
    let impairments = [
        impairment("system", status.system_status()),
        impairment("instance", status.instance_status()),
        attached_ebs_impairment(status),
    ];
    let impairments: Vec<_> = impairments.into_iter().flatten().collect();
    let mut events: Vec<_> =
        status.events().iter().map(|event| translate_event(&instance, event)).collect();
    events.sort_by(|left, right| (&left.id, &left.code).cmp(&(&right.id, &right.code)));
    let is_troubled = !impairments.is_empty() || !events.is_empty();
    is_troubled.then_some(InstanceReport { instance, impairments, events })
}

/// Checks that are still starting or have no data say nothing (Rule 7).
fn impairment(check: &str, summary: Option<&InstanceStatusSummary>) -> Option<Impairment> {
    let summary = summary.filter(|summary| summary.status() == Some(&SummaryStatus::Impaired))?;
    let since = summary.details().iter().filter_map(|detail| detail.impaired_since());
    Some(Impairment { check: check.to_owned(), since: since.filter_map(timestamp).min() })
}

fn attached_ebs_impairment(status: &InstanceStatus) -> Option<Impairment> {
    let summary = status
        .attached_ebs_status()
        .filter(|summary| summary.status() == Some(&SummaryStatus::Impaired))?;
    let since = summary.details().iter().filter_map(|detail| detail.impaired_since());
    Some(Impairment { check: "attached-ebs".to_owned(), since: since.filter_map(timestamp).min() })
}

fn translate_event(instance: &InstanceId, event: &InstanceStatusEvent) -> ScheduledEvent {
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
