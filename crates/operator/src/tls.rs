//! How do our servers speak TLS: with which certificate, which versions and ciphers, and with how
//! many at once?
//!
//! `keys` holds the certificate that new connections are shown; `files` and `self_signed` are the two
//! places that it comes from; `trust` tells others which authorities to trust for it; `settings` are
//! versions and ciphers; `server` accepts connections.

pub mod files;
pub mod keys;
pub mod self_signed;
pub mod server;
pub mod settings;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod trust;
