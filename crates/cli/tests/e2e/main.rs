//! Does the operator do what it promises, on a real control plane? One cluster for all tests; each
//! test has a namespace, a cluster id and an operator process of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy takes the helpers of an integration test for production code"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests are the world around the operator: their clock is the machine's"
)]

mod acceptance;
mod admission;
mod adoption;
mod arena;
mod aws_fields;
mod bad_input;
mod books;
mod breaker;
mod canary;
mod cluster_api;
mod crash;
mod credentials;
mod deletion;
mod disturbed;
mod doctor;
mod drift;
mod faults;
mod guide;
mod health;
mod install;
mod joining;
mod ledger;
mod lifecycle;
mod load_balancers;
mod maintenance;
mod mass_deletion;
mod operator_itself;
mod page;
mod page_browser;
mod permissions;
mod rbac;
mod scraping;
mod seen;
mod spot;
mod takeover;
mod throttle;
mod up;
