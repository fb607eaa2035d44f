//! Does the store do what the real server was seen to do? Tables, without a runtime.

mod lab;

mod deleting;
mod evicting;
mod listing;
mod watching;
mod writing;
