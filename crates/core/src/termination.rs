//! What does the provider announce about the machine of a Node, and what is the Node to say of it?
//!
//! The termination handler asks the metadata service of its own machine. What it was answered is
//! read (`reading`), judged against what the Node says already (`decide`), and written to the Node:
//! the end of a spot instance as the condition `Terminating`, on which a MachineHealthCheck acts;
//! what is less certain as conditions of our own; scheduled events as an annotation.

mod decide;
mod observed;
pub mod reading;
mod scheduled;
#[cfg(test)]
mod tests;

pub use decide::{Annotation, Change, TERMINATION_MESSAGE, decide};
pub use observed::{Action, Answer, InstanceAction, Observed};
pub use scheduled::{EVENTS_MAX, EventState, ScheduledEvent, ScheduledEvents, on_node};
