//! Which program guards the children of a test? This one; it does nothing else.

fn main() {
    machinist_testbed::guard::run_if_asked();
}
