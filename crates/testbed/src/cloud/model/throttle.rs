//! How many calls does EC2 allow? Token buckets with the figures that AWS publishes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::request::{Page, Request};

/// The buckets of one account in one region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Throttle {
    buckets: BTreeMap<Bucket, Level>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bucket {
    NonMutating,
    UnfilteredAndUnpaginated,
    Mutating,
    RunInstances,
    StartInstances,
    TerminateInstances,
    CreateTags,
    ResourcesStarted,
    ResourcesEnded,
    Elb,
    Elbv2,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    tokens: f64,
    at: Timestamp,
}

impl Bucket {
    /// Returns size and refill for each second, from "Request throttling for the Amazon EC2 API".
    fn figures(self) -> (f64, f64) {
        match self {
            Self::NonMutating => (100.0, 20.0),
            Self::UnfilteredAndUnpaginated => (50.0, 10.0),
            Self::Mutating => (50.0, 5.0),
            Self::RunInstances | Self::StartInstances => (5.0, 2.0),
            Self::TerminateInstances => (100.0, 5.0),
            Self::CreateTags => (100.0, 10.0),
            Self::ResourcesStarted => (1000.0, 2.0),
            Self::ResourcesEnded => (1000.0, 20.0),
            // "Request throttling for the ELB API": each API version has buckets of its own.
            Self::Elb | Self::Elbv2 => (40.0, 10.0),
        }
    }
}

impl Throttle {
    /// Takes the tokens of one call; false when a bucket has too few, and then takes none.
    pub fn admits(&mut self, now: Timestamp, request: &Request) -> bool {
        let costs = costs(request);
        for (bucket, _) in &costs {
            self.refill(now, *bucket);
        }
        let enough = costs.iter().all(|(bucket, cost)| {
            self.buckets.get(bucket).is_some_and(|level| level.tokens >= *cost)
        });
        if enough {
            for (bucket, cost) in costs {
                if let Some(level) = self.buckets.get_mut(&bucket) {
                    level.tokens -= cost;
                }
            }
        }
        enough
    }

    fn refill(&mut self, now: Timestamp, bucket: Bucket) {
        let (size, each_second) = bucket.figures();
        let level = self.buckets.entry(bucket).or_insert(Level { tokens: size, at: now });
        let elapsed = now.duration_since(level.at).as_secs_f64().max(0.0);
        level.tokens = (level.tokens + elapsed * each_second).min(size);
        level.at = level.at.max(now);
    }
}

fn costs(request: &Request) -> Vec<(Bucket, f64)> {
    let described = |ids: bool, filters: bool, page: &Page| {
        let narrowed = ids || filters || page.max_results.is_some() || page.next_token.is_some();
        let bucket = if narrowed { Bucket::NonMutating } else { Bucket::UnfilteredAndUnpaginated };
        vec![(bucket, 1.0)]
    };
    match request {
        Request::RunInstances(request) => vec![
            (Bucket::RunInstances, 1.0),
            (Bucket::ResourcesStarted, request.max_count.max(1) as f64),
        ],
        Request::StartInstances(request) => vec![
            (Bucket::StartInstances, 1.0),
            (Bucket::ResourcesStarted, request.instance_ids.len() as f64),
        ],
        Request::TerminateInstances(request) => vec![
            (Bucket::TerminateInstances, 1.0),
            (Bucket::ResourcesEnded, request.instance_ids.len() as f64),
        ],
        Request::StopInstances(request) => vec![
            (Bucket::Mutating, 1.0),
            (Bucket::ResourcesEnded, request.instance_ids.len() as f64),
        ],
        Request::CreateTags(_) => vec![(Bucket::CreateTags, 1.0)],
        Request::RebootInstances(_)
        | Request::DeleteTags(_)
        | Request::AllocateHosts(_)
        | Request::ReleaseHosts(_)
        | Request::ModifyInstanceMaintenanceOptions(_)
        | Request::ModifyInstanceEventStartTime(_) => vec![(Bucket::Mutating, 1.0)],
        Request::DescribeInstances(request) => {
            described(!request.instance_ids.is_empty(), !request.filters.is_empty(), &request.page)
        }
        Request::DescribeInstanceStatus(request) => {
            described(!request.instance_ids.is_empty(), !request.filters.is_empty(), &request.page)
        }
        Request::DescribeHosts(request) => {
            described(!request.host_ids.is_empty(), !request.filters.is_empty(), &request.page)
        }
        Request::Elb(_) => vec![(Bucket::Elb, 1.0)],
        Request::Elbv2(_) => vec![(Bucket::Elbv2, 1.0)],
        Request::DescribeVpcs(request)
        | Request::DescribeDhcpOptions(request)
        | Request::DescribeSubnets(request)
        | Request::DescribeSecurityGroups(request)
        | Request::DescribeImages(request)
        | Request::DescribeInstanceTypes(request) => described(
            !request.ids.is_empty() || !request.names.is_empty() || !request.owners.is_empty(),
            !request.filters.is_empty(),
            &request.page,
        ),
        Request::DescribeRegions(_) | Request::DescribeAvailabilityZones(_) => {
            vec![(Bucket::NonMutating, 1.0)]
        }
    }
}
