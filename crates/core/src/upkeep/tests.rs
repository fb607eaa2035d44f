//! The tables of the contract, row by row.

mod common;
mod fighting;
mod modes;
mod objects;
mod status;
mod taking_over;
mod workers_needed;
