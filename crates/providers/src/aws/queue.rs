//! What does EC2 tell by itself? The queue that EventBridge fills, read as notices.

mod notice;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message};

use super::{
    actions::Action,
    client::{CallPath, shared_config},
    errors::Attempt,
    settings::AwsSettings,
};
use crate::{
    ErrorClass, ProviderError,
    notice::{NoticeQueue, Received},
    service,
};

/// The longest that SQS lets a caller wait for the first message. Shorter, the calls cost more.
const WAIT: Duration = Duration::from_secs(20);

/// SQS hands out and takes back no more than this at once.
const BATCH_MAX: usize = 10;

/// A queue of SQS that EventBridge sends EC2's events to.
///
/// Delivery is at least once and unordered: a notice is a reason to look, never the truth.
pub struct EventQueue {
    client: aws_sdk_sqs::Client,
    url: String,
    path: CallPath,
}

impl fmt::Debug for EventQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventQueue").field("url", &self.url).finish_non_exhaustive()
    }
}

impl EventQueue {
    /// Builds the client. Calls nothing: a wrong URL shows at the first `receive`.
    pub async fn new(
        settings: AwsSettings,
        queue_url: impl Into<String>,
    ) -> Result<Self, ProviderError> {
        let url = queue_url.into();
        // The wait is part of the call.
        let shared = shared_config(&settings, settings.timeouts.call + WAIT).await?;
        let mut config = aws_sdk_sqs::config::Builder::from(&shared);
        config.set_endpoint_url(settings.endpoint(service::SQS).map(str::to_owned));
        Ok(Self {
            client: aws_sdk_sqs::Client::from_conf(config.build()),
            url,
            // Not paced: the pace is EC2's, and a wait here would hold everybody's turn.
            path: CallPath { observer: settings.observer, pacer: None },
        })
    }

    fn delete_attempt(&self) -> Attempt {
        let what = format!("delete messages from queue {}", self.url);
        Attempt::on_queue(Action::DeleteMessageBatch, what)
    }
}

#[async_trait]
impl NoticeQueue for EventQueue {
    /// Waits up to 20 seconds for messages and returns at most ten; none is no error.
    async fn receive(&self) -> Result<Vec<Received>, ProviderError> {
        let what = format!("receive from queue {}", self.url);
        let attempt = Attempt::on_queue(Action::ReceiveMessage, what);
        let call = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .wait_time_seconds(i32::try_from(WAIT.as_secs()).unwrap_or_default())
            .max_number_of_messages(i32::try_from(BATCH_MAX).unwrap_or_default());
        let answer = self.path.call(&attempt, call.send()).await?;
        Ok(answer.messages.unwrap_or_default().into_iter().filter_map(received).collect())
    }

    async fn delete(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let mut failures = Vec::new();
        for batch in receipts.chunks(BATCH_MAX) {
            let attempt = self.delete_attempt();
            let mut entries = Vec::new();
            for (index, receipt) in batch.iter().enumerate() {
                let entry = DeleteMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(receipt)
                    .build()
                    .map_err(|error| attempt.failed(ErrorClass::Unknown, error))?;
                entries.push(entry);
            }
            let call =
                self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries));
            let answer = self.path.call(&attempt, call.send()).await?;
            failures.extend(answer.failed().iter().map(|failed| failed.code().to_owned()));
        }
        let Some(code) = failures.first() else { return Ok(()) };
        let words = format!("{} of {} were not: {code}", failures.len(), receipts.len());
        Err(self.delete_attempt().failed(ErrorClass::Transient, words))
    }
}

/// A message without a receipt cannot even be deleted.
fn received(message: Message) -> Option<Received> {
    let receipt = message.receipt_handle?;
    Some(Received { receipt, content: notice::parse(message.body.as_deref().unwrap_or_default()) })
}
