//! How does each verb of the contract become calls of the model? As the AWS provider makes them.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::{RawObject, names::tag};
use machinist_core::cloud::{
    ErrorClass, Impairment, Instance, InstanceId, InstanceReport, InstanceState, ScheduledEvent,
};
use machinist_providers::{InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError};
use machinist_testbed::cloud::model::{
    CreateTags, DescribeInstanceStatus, DescribeInstances, DescribeResources, Filter, InstanceIds,
    InstanceMarketOptions, ModifyInstanceEventStartTime, ModifyInstanceMaintenanceOptions,
    NetworkInterfaceSpecification, Page, Request, Response, RunInstances, StatusCheck, Tag,
    TagSpecification, UserData,
};
use serde_json::{Value, json};

use super::{
    SimulatedProvider,
    translate::{self, Subject},
};

/// As many as the real provider asks for.
const PAGE_SIZE: i64 = 1_000;
/// Ends a list whose pages never end.
const PAGES_MAX: usize = 1_000;

impl SimulatedProvider {
    async fn instances(&self, what: &str, filter: Filter) -> Result<Vec<Instance>, ProviderError> {
        let mut found = BTreeMap::new();
        let mut next_token = None;
        for _ in 0..PAGES_MAX {
            let page = Page { max_results: Some(PAGE_SIZE), next_token };
            let filters = vec![filter.clone()];
            let request = DescribeInstances { filters, page, ..Default::default() };
            let request = Request::DescribeInstances(request);
            let Response::Instances(page) = self.call(what, Subject::Instance, request).await?
            else {
                return Err(misunderstood(what));
            };
            for instance in page.items.iter().flat_map(|reservation| &reservation.instances) {
                let instance = translate::instance(instance, &self.region);
                found.insert(instance.id.clone(), instance);
            }
            next_token = page.next_token;
            if next_token.is_none() {
                return Ok(found.into_values().collect());
            }
        }
        Err(ProviderError::new(ErrorClass::Unknown, format!("failed to {what}: endless pages")))
    }

    async fn change_state(
        &self,
        what: String,
        request: Request,
    ) -> Result<InstanceState, ProviderError> {
        match self.call(&what, Subject::Instance, request).await? {
            Response::StateChanges(changes) => changes
                .first()
                .map(|change| translate::state(change.current))
                .ok_or_else(|| misunderstood(&what)),
            _ => Err(misunderstood(&what)),
        }
    }
}

#[async_trait]
impl Provider for SimulatedProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    async fn list(&self, cluster_id: &str) -> Result<Vec<Instance>, ProviderError> {
        let owned = filter(format!("tag:{}", tag::cluster(cluster_id)), [tag::OWNED]);
        self.instances(&format!("list the instances of cluster {cluster_id}"), owned).await
    }

    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        let by_id = filter("instance-id", ids.iter().map(|id| id.0.as_str()));
        self.instances("describe instances", by_id).await
    }

    async fn find(
        &self,
        machine_uid: &str,
        client_tokens: &[String],
    ) -> Result<Vec<Instance>, ProviderError> {
        let what = format!("find the instances of machine uid {machine_uid}");
        let by_uid = filter(format!("tag:{}", tag::MACHINE_UID), [machine_uid]);
        let mut found = self.instances(&what, by_uid).await?;
        if !client_tokens.is_empty() {
            let by_token = filter("client-token", client_tokens.iter().map(String::as_str));
            found.extend(self.instances(&what, by_token).await?);
        }
        found.sort_by(|left, right| left.id.cmp(&right.id));
        found.dedup_by(|left, right| left.id == right.id);
        Ok(found)
    }

    async fn prepare(&self, request: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        let spec = spec_of(&request.provider_spec)?;
        let subnet = text(&spec, "/subnet/id");
        let what = format!("find subnet {subnet}");
        let question = DescribeResources { ids: vec![subnet], ..Default::default() };
        let question = Request::DescribeSubnets(question);
        let answer = self.call(&what, Subject::LaunchInput, question).await?;
        let Response::Subnets(found) = answer else { return Err(misunderstood(&what)) };
        let Some(subnet) = found.items.first() else {
            let message = format!("providerSpec.subnet: failed to {what}: none found");
            return Err(ProviderError::new(ErrorClass::InvalidConfiguration, message));
        };
        let groups = spec.get("securityGroups").and_then(Value::as_array).into_iter().flatten();
        let groups: Vec<&Value> = groups.filter_map(|group| group.get("id")).collect();
        let resolved = json!({
            "imageId": text(&spec, "/ami/id"),
            "subnetId": subnet.id,
            "securityGroupIds": groups,
            "zone": subnet.zone,
        });
        Ok(PreparedLaunch { request: request.clone(), resolved })
    }

    async fn launch(
        &self,
        prepared: &PreparedLaunch,
        client_token: &str,
    ) -> Result<Instance, ProviderError> {
        let request = &prepared.request;
        let spec = spec_of(&request.provider_spec)?;
        let what = format!("launch an instance for machine {}", request.machine_name);
        let run = run_instances(&spec, &prepared.resolved, request, self, client_token);
        let call = Request::RunInstances(Arc::new(run));
        match self.call(&what, Subject::LaunchInput, call).await? {
            Response::Launched(reservation) => reservation
                .instances
                .first()
                .map(|instance| translate::instance(instance, &self.region))
                .ok_or_else(|| misunderstood(&what)),
            _ => Err(misunderstood(&what)),
        }
    }

    async fn terminate(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        let request = Request::TerminateInstances(only(id));
        self.change_state(format!("terminate instance {id}"), request).await
    }

    async fn tag(
        &self,
        id: &InstanceId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ProviderError> {
        if tags.is_empty() {
            return Ok(());
        }
        let tags = tags.iter().map(|(key, value)| model_tag(key, value)).collect();
        let request = CreateTags { resources: vec![id.0.clone()], tags, dry_run: false };
        let request = Request::CreateTags(request);
        self.call(&format!("tag instance {id}"), Subject::Instance, request).await.map(|_| ())
    }

    fn tags(&self, request: &LaunchRequest) -> BTreeMap<String, String> {
        let Ok(spec) = spec_of(&request.provider_spec) else { return BTreeMap::new() };
        let own = spec.get("tags").and_then(Value::as_array).into_iter().flatten();
        let own = own.map(|one| (text(one, "/name"), text(one, "/value")));
        let mut tags = request.cluster_tags.clone();
        tags.extend(own);
        tags.retain(|key, _| {
            key != tag::NAME && key != tag::MACHINE_UID && !key.starts_with(tag::CLUSTER_PREFIX)
        });
        tags.insert(tag::cluster(&request.cluster_id), tag::OWNED.to_owned());
        tags.insert(tag::NAME.to_owned(), request.machine_name.clone());
        tags.insert(tag::MACHINE_UID.to_owned(), request.machine_uid.clone());
        tags
    }

    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        let request = Request::StartInstances(only(id));
        self.change_state(format!("start instance {id}"), request).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        let request = Request::StopInstances(only(id));
        self.change_state(format!("stop instance {id}"), request).await
    }

    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError> {
        let request = Request::RebootInstances(only(id));
        self.call(&format!("reboot instance {id}"), Subject::Instance, request).await.map(|_| ())
    }

    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        let what = "list the status of instances";
        let request = Request::DescribeInstanceStatus(DescribeInstanceStatus::default());
        let Response::InstanceStatuses(page) = self.call(what, Subject::Instance, request).await?
        else {
            return Err(misunderstood(what));
        };
        let mut reports = BTreeMap::new();
        for status in page.items {
            let id = InstanceId(status.instance_id.clone());
            let impairments: Vec<Impairment> = [
                ("system", &status.system_check),
                ("instance", &status.instance_check),
                ("attached-ebs", &status.attached_ebs_check),
            ]
            .into_iter()
            .filter_map(|(name, check)| impairment(name, check))
            .collect();
            let events: Vec<ScheduledEvent> = status.events.iter().map(event).collect();
            if !impairments.is_empty() || !events.is_empty() {
                reports.insert(id.clone(), InstanceReport { instance: id, impairments, events });
            }
        }
        Ok(reports.into_values().collect())
    }

    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        let what = format!("move event {event_id} of instance {id}");
        let request = Request::ModifyInstanceEventStartTime(ModifyInstanceEventStartTime {
            instance_id: id.0.clone(),
            instance_event_id: event_id.to_owned(),
            not_before,
            dry_run: false,
        });
        self.call(&what, Subject::Instance, request).await.map(|_| ())
    }

    async fn enable_reboot_migration(&self, id: &InstanceId) -> Result<(), ProviderError> {
        let what = format!("let reboots of instance {id} move it to another host");
        let request = Request::ModifyInstanceMaintenanceOptions(ModifyInstanceMaintenanceOptions {
            instance_id: id.0.clone(),
            auto_recovery: None,
            reboot_migration: Some("default".to_owned()),
            dry_run: false,
        });
        self.call(&what, Subject::Instance, request).await.map(|_| ())
    }

    async fn attach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        no_load_balancers(provider_spec, instance)
    }

    async fn detach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        no_load_balancers(provider_spec, instance)
    }

    /// Nothing here allocates hosts, so none is ever found.
    async fn release_hosts(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        let what = "list the instance types";
        let request = Request::DescribeInstanceTypes(DescribeResources::default());
        let Response::InstanceTypes(page) = self.call(what, Subject::Instance, request).await?
        else {
            return Err(misunderstood(what));
        };
        let mut sizes: Vec<InstanceSize> = page
            .items
            .into_iter()
            .map(|size| InstanceSize {
                name: size.name.to_owned(),
                vcpus: size.vcpus,
                memory_mib: size.memory_mib,
                gpus: size.gpu.map_or(0, |gpu| gpu.count),
                architecture: match size.architecture {
                    "x86_64" => "amd64".to_owned(),
                    other => other.to_owned(),
                },
                has_instance_store: false,
            })
            .collect();
        sizes.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(sizes)
    }
}

fn run_instances(
    spec: &Value,
    resolved: &Value,
    request: &LaunchRequest,
    provider: &SimulatedProvider,
    client_token: &str,
) -> RunInstances {
    let tags: Vec<Tag> =
        provider.tags(request).iter().map(|(key, value)| model_tag(key, value)).collect();
    let tagged =
        |kind: &str| TagSpecification { resource_type: kind.to_owned(), tags: tags.clone() };
    let groups = resolved.get("securityGroupIds").and_then(Value::as_array).into_iter().flatten();
    RunInstances {
        image_id: Some(text(resolved, "/imageId")),
        instance_type: Some(text(spec, "/instanceType")),
        min_count: 1,
        max_count: 1,
        client_token: Some(client_token.to_owned()),
        network_interfaces: vec![NetworkInterfaceSpecification {
            device_index: Some(0),
            subnet_id: Some(text(resolved, "/subnetId")),
            groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
            ..Default::default()
        }],
        tag_specifications: vec![tagged("instance"), tagged("volume")],
        user_data: request.user_data.as_ref().map(|data| UserData(data.0.clone())),
        instance_market_options: spec.get("spotMarketOptions").map(|_| InstanceMarketOptions {
            market_type: Some("spot".to_owned()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn spec_of(provider_spec: &RawObject) -> Result<Value, ProviderError> {
    provider_spec.parse().map_err(|error| {
        ProviderError::new(ErrorClass::InvalidConfiguration, format!("providerSpec: {error}"))
    })
}

/// The pools of a simulated cluster have none; one that names some is told so, not ignored.
fn no_load_balancers(spec: &RawObject, instance: &Instance) -> Result<(), ProviderError> {
    let named = spec_of(spec)?.get("loadBalancers").and_then(Value::as_array).map_or(0, Vec::len);
    if named == 0 {
        return Ok(());
    }
    let message =
        format!("failed to register instance {}: this cloud has no load balancers", instance.id);
    Err(ProviderError::new(ErrorClass::Unknown, message))
}

fn impairment(name: &str, check: &StatusCheck) -> Option<Impairment> {
    (check.status == "impaired")
        .then(|| Impairment { check: name.to_owned(), since: check.impaired_since })
}

fn event(event: &machinist_testbed::cloud::model::ScheduledEvent) -> ScheduledEvent {
    ScheduledEvent {
        id: event.event_id.clone(),
        instance: InstanceId(event.instance_id.clone()),
        code: event.code.name().to_owned(),
        description: event.wire_description(),
        not_before: Some(event.not_before),
        not_after: event.not_after,
        not_before_deadline: event.not_before_deadline,
    }
}

fn filter<'a>(name: impl Into<String>, values: impl IntoIterator<Item = &'a str>) -> Filter {
    Filter { name: name.into(), values: values.into_iter().map(str::to_owned).collect() }
}

fn only(id: &InstanceId) -> InstanceIds {
    InstanceIds { instance_ids: vec![id.0.clone()], dry_run: false }
}

fn model_tag(key: &str, value: &str) -> Tag {
    Tag { key: key.to_owned(), value: value.to_owned() }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn misunderstood(what: &str) -> ProviderError {
    ProviderError::new(ErrorClass::Unknown, format!("failed to {what}: another kind of answer"))
}
