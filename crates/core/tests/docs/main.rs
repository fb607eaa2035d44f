//! Are the docs true? What can be generated of docs/ is written here and compared (`UPDATE=1`, or
//! `make reference`, writes it anew); every reason to wait has its page; every link leads somewhere.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy takes the helpers of an integration test for production code"
)]

mod crds;
mod golden;
mod links;
mod names;
mod source;
mod waits;
