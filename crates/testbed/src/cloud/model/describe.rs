//! What do DescribeInstances and DescribeInstanceStatus show?

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    Cloud,
    error::Ec2Error,
    filter::{Filterable, check_filters, cut_short_page, matches_filters},
    instance::{ImpairedCheck, Instance, InstanceState},
    lifecycle::check_instance_ids,
    reads::{FilterAnswer, View},
    request::{DescribeInstanceStatus, DescribeInstances, Page},
    response::{InstanceStatus, Paged, Reservation, Response, StatusCheck},
    tags::Tags,
    time::{later, wire_time},
};

/// EC2 takes at most 100 explicit ids in DescribeInstanceStatus.
const STATUS_IDS_MAX: usize = 100;
const DESCRIBE_IDS_MAX: usize = 1000;

impl Cloud {
    pub(super) fn describe_instances(
        &mut self,
        now: Timestamp,
        request: &DescribeInstances,
    ) -> Result<Response, Ec2Error> {
        check_filters::<Instance>(&request.filters)?;
        let view = self.draw_view(now, &request.instance_ids);
        let limit = self.draw_page_limit();
        let candidates =
            self.candidates(now, &view, &request.instance_ids, &request.page, DESCRIBE_IDS_MAX)?;
        let matching = candidates
            .into_iter()
            .filter(|instance| matches_filters(*instance, &request.filters))
            .cloned();
        let limit = limit.filter(|_| request.instance_ids.is_empty());
        let page = cut_short_page("DescribeInstances", &request.page, limit, matching)?;
        let mut reservations: BTreeMap<String, Reservation> = BTreeMap::new();
        for instance in page.items {
            reservations
                .entry(instance.reservation_id.clone())
                .or_insert_with(|| Reservation {
                    id: instance.reservation_id.clone(),
                    owner_id: instance.owner_id.clone(),
                    instances: Vec::new(),
                })
                .instances
                .push(instance);
        }
        let mut items: Vec<Reservation> = reservations.into_values().collect();
        self.shuffle(&mut items);
        for reservation in &mut items {
            self.shuffle(&mut reservation.instances);
        }
        Ok(Response::Instances(Paged { items, next_token: page.next_token }))
    }

    pub(super) fn describe_instance_status(
        &mut self,
        now: Timestamp,
        request: &DescribeInstanceStatus,
    ) -> Result<Response, Ec2Error> {
        check_filters::<InstanceStatus>(&request.filters)?;
        let view = self.draw_view(now, &request.instance_ids);
        let limit = self.draw_page_limit();
        let candidates =
            self.candidates(now, &view, &request.instance_ids, &request.page, STATUS_IDS_MAX)?;
        let is_shown = |status: &InstanceStatus| match self.faults.status_filters {
            Some(answer) if !request.filters.is_empty() => answer == FilterAnswer::Everything,
            _ => matches_filters(status, &request.filters),
        };
        let matching = candidates
            .into_iter()
            .filter(|instance| {
                request.include_all_instances || instance.state == InstanceState::Running
            })
            .map(|instance| self.status_of(now, instance))
            .filter(is_shown);
        let limit = limit.filter(|_| request.instance_ids.is_empty());
        let mut page = cut_short_page("DescribeInstanceStatus", &request.page, limit, matching)?;
        self.shuffle(&mut page.items);
        Ok(Response::InstanceStatuses(page))
    }

    /// Returns the instances that a Describe call may show, in the order of their ids.
    fn candidates<'a>(
        &'a self,
        now: Timestamp,
        view: &'a View,
        ids: &[String],
        page: &Page,
        ids_max: usize,
    ) -> Result<Vec<&'a Instance>, Ec2Error> {
        if ids.is_empty() {
            return Ok(view.all(&self.instances, now).collect());
        }
        if page.max_results.is_some() {
            return Err(Ec2Error::invalid_combination(
                "The parameter instancesSet cannot be used with the parameter maxResults",
            ));
        }
        if ids.len() > ids_max {
            return Err(Ec2Error::invalid_value(format!(
                "The maximum number of instance IDs in a call is {ids_max}"
            )));
        }
        let mut ids = ids.to_vec();
        ids.sort();
        ids.dedup();
        check_instance_ids(&ids)?;
        let find = |id: &String| view.get(&self.instances, now, id);
        let missing: Vec<&str> =
            ids.iter().filter(|id| find(id).is_none()).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(Ec2Error::instances_not_found(&missing));
        }
        Ok(ids.iter().filter_map(find).collect())
    }

    fn status_of(&self, now: Timestamp, instance: &Instance) -> InstanceStatus {
        let check = |check: ImpairedCheck| self.check_of(now, instance, check);
        InstanceStatus {
            instance_id: instance.id.clone(),
            availability_zone: instance.availability_zone.clone(),
            availability_zone_id: instance.availability_zone_id.clone(),
            state: instance.state,
            instance_check: check(ImpairedCheck::Instance),
            system_check: check(ImpairedCheck::System),
            attached_ebs_check: check(ImpairedCheck::AttachedEbs),
            events: instance.events.values().cloned().collect(),
        }
    }

    fn check_of(&self, now: Timestamp, instance: &Instance, check: ImpairedCheck) -> StatusCheck {
        let Some(booted_at) =
            instance.booted_at.filter(|_| instance.state == InstanceState::Running)
        else {
            return StatusCheck {
                status: "not-applicable",
                reachability: None,
                impaired_since: None,
            };
        };
        // A broken host takes its guest with it, so both checks fail; a broken guest fails one.
        let impairment = instance.impairment.as_ref().filter(|impairment| match check {
            ImpairedCheck::Instance => impairment.check != ImpairedCheck::AttachedEbs,
            ImpairedCheck::System | ImpairedCheck::AttachedEbs => impairment.check == check,
        });
        let checked_at = later(booted_at, self.config.delays.status_checks_initializing);
        match impairment {
            Some(impairment) => StatusCheck {
                status: "impaired",
                reachability: Some("failed"),
                impaired_since: Some(impairment.since),
            },
            None if now < checked_at => StatusCheck {
                status: "initializing",
                reachability: Some("initializing"),
                impaired_since: None,
            },
            None => {
                StatusCheck { status: "ok", reachability: Some("passed"), impaired_since: None }
            }
        }
    }
}

impl Filterable for InstanceStatus {
    const FILTERS: &'static [&'static str] = &[
        "availability-zone",
        "availability-zone-id",
        "event.code",
        "event.description",
        "event.instance-event-id",
        "event.not-after",
        "event.not-before",
        "event.not-before-deadline",
        "instance-state-code",
        "instance-state-name",
        "instance-status.reachability",
        "instance-status.status",
        "system-status.reachability",
        "system-status.status",
        "attached-ebs-status.status",
    ];

    fn page_key(&self) -> &str {
        &self.instance_id
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        let events = self.events.iter();
        let reachability =
            |check: &StatusCheck| check.reachability.map(str::to_owned).into_iter().collect();
        match name {
            "availability-zone" => vec![self.availability_zone.clone()],
            "availability-zone-id" => vec![self.availability_zone_id.clone()],
            "event.code" => events.map(|event| event.code.name().to_owned()).collect(),
            "event.description" => events.map(|event| event.wire_description()).collect(),
            "event.instance-event-id" => events.map(|event| event.event_id.clone()).collect(),
            "event.not-after" => {
                events.filter_map(|event| event.not_after).map(wire_time).collect()
            }
            "event.not-before" => events.map(|event| wire_time(event.not_before)).collect(),
            "event.not-before-deadline" => {
                events.filter_map(|event| event.not_before_deadline).map(wire_time).collect()
            }
            "instance-state-code" => vec![self.state.code().to_string()],
            "instance-state-name" => vec![self.state.name().into()],
            "instance-status.reachability" => reachability(&self.instance_check),
            "instance-status.status" => vec![self.instance_check.status.into()],
            "system-status.reachability" => reachability(&self.system_check),
            "system-status.status" => vec![self.system_check.status.into()],
            "attached-ebs-status.status" => vec![self.attached_ebs_check.status.into()],
            _ => Vec::new(),
        }
    }
}
