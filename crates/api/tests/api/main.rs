//! Are the objects on the wire what users of the originals know?

#![expect(clippy::unwrap_used, reason = "clippy knows tests, but not their helpers")]

mod crds;
mod round_trip;
