//! Does the testbed's cluster behave as a real one? All tests share one cluster.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy takes the helpers of an integration test for production code"
)]

#[path = "testbed/children.rs"]
mod children;
#[path = "testbed/machines.rs"]
mod machines;
#[path = "testbed/pods.rs"]
mod pods;
#[path = "testbed/spot.rs"]
mod spot;
#[path = "testbed/support.rs"]
mod support;
