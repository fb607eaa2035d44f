//! What does the queue of events promise?

use std::{collections::BTreeSet, time::Duration};

use machinist_providers::{
    ErrorClass, InstanceId,
    aws::EventQueue,
    notice::{NoticeKind, NoticeQueue},
};
use serde_json::json;

use crate::harness::{Capability, Harness};

fn state_change(instance: &str) -> String {
    json!({
        "version": "0", "id": "1", "detail-type": "EC2 Instance State-change Notification",
        "source": "aws.ec2", "time": "2026-05-01T10:00:00Z", "region": "us-east-1",
        "resources": [], "detail": {"instance-id": instance, "state": "stopped"},
    })
    .to_string()
}

/// Receives until `count` different messages were seen.
async fn receive(queue: &EventQueue, count: usize) -> Vec<machinist_providers::notice::Received> {
    let received = tokio::time::timeout(Duration::from_secs(120), async {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(queue.receive().await.unwrap());
        }
        received
    });
    received.await.expect("messages arrive")
}

pub async fn notices_are_received_until_they_are_deleted(harness: &Harness) {
    if !harness.can(Capability::Queue) {
        return;
    }
    let url = harness.console.create_queue(&harness.name("events")).await;
    let queue = EventQueue::new(harness.settings.clone(), url.clone()).await.unwrap();
    for number in 0..12 {
        harness.console.send(&url, &state_change(&format!("i-{number}"))).await;
    }
    harness.console.send(&url, "not json").await;
    harness.console.send(&url, &json!({"detail-type": "Something New"}).to_string()).await;

    let received = receive(&queue, 14).await;
    let mut instances = BTreeSet::new();
    let (mut malformed, mut others) = (0, 0);
    for message in &received {
        match &message.content {
            Ok(notice) if matches!(notice.kind, NoticeKind::StateChanged { .. }) => {
                instances.extend(notice.instances.clone());
            }
            Ok(notice) => {
                assert_eq!(notice.kind, NoticeKind::Other { name: "Something New".to_owned() });
                others += 1;
            }
            Err(_) => malformed += 1,
        }
    }
    let expected: BTreeSet<_> = (0..12).map(|number| InstanceId(format!("i-{number}"))).collect();
    assert_eq!(instances, expected);
    assert_eq!((malformed, others), (1, 1));

    let receipts: Vec<_> = received.iter().map(|message| message.receipt.clone()).collect();
    let calls = harness.calls.count("sqs:DeleteMessageBatch");
    queue.delete(&receipts).await.unwrap();
    assert_eq!(harness.calls.count("sqs:DeleteMessageBatch") - calls, 2);
    queue.delete(&[]).await.unwrap();

    // What was not deleted is hidden, and comes again when told to.
    harness.console.send(&url, &state_change("i-99")).await;
    let first = receive(&queue, 1).await.remove(0);
    let show = harness.console.sqs.change_message_visibility().queue_url(&url);
    show.receipt_handle(&first.receipt).visibility_timeout(0).send().await.unwrap();
    let again = receive(&queue, 1).await.remove(0);
    assert_eq!(again.content, first.content);
    queue.delete(&[again.receipt]).await.unwrap();
}

pub async fn missing_queue_is_not_found(harness: &Harness) {
    if !harness.can(Capability::Queue) {
        return;
    }
    let url = harness.console.create_queue(&harness.name("events")).await;
    let missing = url.replace("events-", "no-such-queue-");
    let queue = EventQueue::new(harness.settings.clone(), missing.clone()).await.unwrap();
    let error = queue.receive().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound, "{error}");
    assert!(error.message.contains(&missing), "{error}");
}
