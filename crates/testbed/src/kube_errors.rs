//! Which of the API server's refusals have a meaning of their own?

/// The object does not exist.
pub(crate) const fn is_missing(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// The object exists already, or changed since it was read.
pub(crate) const fn is_conflict(error: &kube::Error) -> bool {
    has_code(error, 409)
}

const fn has_code(error: &kube::Error, code: u16) -> bool {
    match error {
        kube::Error::Api(status) => status.code == code,
        _ => false,
    }
}
