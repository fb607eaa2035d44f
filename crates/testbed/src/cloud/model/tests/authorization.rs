//! Does a right that was taken away refuse what it should, and nothing else?

use super::*;

fn caller(key: &str) -> Caller {
    Caller { access_key_id: Some(key.into()), user_agent: String::new() }
}

fn deny(bench: &mut Bench, json: &str) {
    let faults = serde_json::from_str(json).expect("faults");
    bench.cloud.add_faults(bench.now, faults).expect("faults");
}

#[test]
fn a_denied_action_answers_as_iam_does() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    deny(&mut bench, r#"{"denied": [{"action": "ec2:StopInstances"}]}"#);
    let stop = Request::StopInstances(ids(&[&id]));
    let error =
        bench.cloud.call(bench.now, &caller("AKIAX"), stop.clone()).result.expect_err("a refusal");
    assert_eq!((error.code.as_str(), error.status), ("UnauthorizedOperation", 403));
    let expected = format!(
        "You are not authorized to perform this operation. User: \
         arn:aws:iam::123456789012:user/AKIAX is not authorized to perform: ec2:StopInstances on \
         resource: arn:aws:ec2:us-east-1:123456789012:instance/{id} because no identity-based \
         policy allows the ec2:StopInstances action. Encoded authorization failure message: "
    );
    assert!(error.message.starts_with(&expected), "{}", error.message);
    assert!(error.message.len() > expected.len() + 20);
    assert_eq!(bench.instance(&id).state, InstanceState::Running);
    bench.cloud.clear_fault_kind("denied").expect("a kind");
    bench.call(stop).result.expect("a stop");
}

#[test]
fn patterns_and_keys_choose_whom_a_denial_meets() {
    type Make = fn(&str) -> Request;
    let describe: Make = |_| Request::DescribeInstances(DescribeInstances::default());
    let reboot: Make = |id| Request::RebootInstances(ids(&[id]));
    let balancers: Make =
        |_| Request::Elbv2(Elbv2Request::DescribeLoadBalancers(DescribeLoadBalancers::default()));
    let classic: Make = |_| {
        Request::Elb(ElbRequest::DescribeLoadBalancers(DescribeClassicLoadBalancers::default()))
    };
    for (denied, refused) in [
        (r#"{"action": "ec2:Describe*"}"#, [true, false, false, false]),
        (r#"{"action": "ec2:*"}"#, [true, true, false, false]),
        (r#"{"action": "*"}"#, [true, true, true, true]),
        (r#"{"action": "elasticloadbalancing:*"}"#, [false, false, true, true]),
        (r#"{"action": "elbv2:DescribeLoadBalancers"}"#, [false, false, true, false]),
        (r#"{"action": "ec2:*", "accessKey": "AKIAA"}"#, [true, true, false, false]),
        (r#"{"action": "ec2:*", "accessKey": "AKIAB"}"#, [false, false, false, false]),
    ] {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        deny(&mut bench, &format!(r#"{{"denied": [{denied}]}}"#));
        for (make, is_refused) in [describe, reboot, balancers, classic].into_iter().zip(refused) {
            let request = make(&id);
            let service = request.service();
            let result = bench.cloud.call(bench.now, &caller("AKIAA"), request).result;
            assert_eq!(result.is_err(), is_refused, "{denied} {service:?}");
            if let Err(error) = result {
                let expected = match service {
                    Service::Ec2 => "UnauthorizedOperation",
                    Service::Elb | Service::Elbv2 => "AccessDenied",
                };
                assert_eq!((error.code.as_str(), error.status), (expected, 403));
            }
        }
    }
}

#[test]
fn a_denial_of_nothing_is_refused() {
    let mut bench = Bench::new();
    for action in ["StartInstances", "ec2:Fly", "s3:*", ""] {
        let faults = serde_json::json!({ "denied": [{ "action": action }] });
        let faults = serde_json::from_value(faults).expect("faults");
        let refused = bench.cloud.add_faults(bench.now, faults);
        assert!(matches!(refused, Err(ConsoleError::Invalid(_))), "{action}");
    }
    let refused = bench.cloud.clear_fault_kind("gravity");
    assert!(matches!(refused, Err(ConsoleError::Invalid(_))));
}
