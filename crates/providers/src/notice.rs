//! What does a cloud tell by itself? Notices from a queue, in words that fit every provider.

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_core::cloud::InstanceId;

use crate::ProviderError;

/// A queue of notices. Each message comes at least once, in no order, and again until it is deleted:
/// a notice is a reason to look, never the truth.
#[async_trait]
pub trait NoticeQueue: Send + Sync {
    /// Waits a while for messages; none is no error.
    async fn receive(&self) -> Result<Vec<Received>, ProviderError>;

    /// Deletes messages by their receipts. What fails is received again later.
    async fn delete(&self, receipts: &[String]) -> Result<(), ProviderError>;
}

/// One message. It comes again unless it is deleted.
#[derive(Clone, Debug)]
pub struct Received {
    pub receipt: String,
    pub content: Result<Notice, Malformed>,
}

/// Something that the provider told about instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whom it is about; may be empty, and may be anybody's.
    pub instances: Vec<InstanceId>,
    pub kind: NoticeKind,
    /// When it was told.
    pub at: Option<Timestamp>,
}

/// What was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// The state is now this one, in the provider's words: `stopping`, `terminated`.
    StateChanged { state: String },
    /// A spot instance is about to be taken back.
    SpotInterruption {
        /// What happens to it: `terminate`, `stop` or `hibernate`.
        action: String,
        /// When it happens.
        at: Option<Timestamp>,
    },
    /// A spot instance is likely to be taken back.
    RebalanceRecommended,
    /// An event of the provider's own health service.
    Health {
        /// Such as `AWS_EC2_INSTANCE_STOP_SCHEDULED`.
        code: String,
        /// Such as `scheduledChange` or `issue`.
        category: String,
        /// `upcoming`, `open` or `closed`; a closed one needs no work.
        status: String,
        starts_at: Option<Timestamp>,
        ends_at: Option<Timestamp>,
        /// Equal for the copies of one event that come from two regions.
        communication_id: String,
    },
    /// Something else; its name in the provider's words, empty where it has none.
    Other { name: String },
}

/// Why a message cannot be read. Has nothing of the message itself but names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub String);
