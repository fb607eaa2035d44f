//! Do filters and pages select what EC2 would select?

use proptest::prelude::*;

use super::super::filter::matches_pattern;
use super::*;

#[test]
fn patterns_match_as_in_ec2() {
    for (pattern, value, expected) in [
        ("", "", true),
        ("a", "", false),
        ("abc", "abc", true),
        ("abc", "ABC", false),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c*e", "abcde", true),
        ("a*c*f", "abcde", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*", "", true),
        ("?", "", false),
        (r"a\*", "a*", true),
        (r"a\*", "ab", false),
        (r"a\?b", "a?b", true),
        ("*ab", "aab", true),
        ("**a**", "bab", true),
    ] {
        assert_eq!(matches_pattern(pattern, value), expected, "{pattern} against {value}");
    }
}

#[test]
fn unknown_filters_and_too_many_values_are_refused() {
    let mut bench = Bench::new();
    let describe = |filters| DescribeInstances { filters, ..DescribeInstances::default() };
    for (filters, expected) in [
        (vec![filter("nonsense", &["x"])], "InvalidParameterValue"),
        (vec![filter("tag:a", &[])], "InvalidParameterValue"),
        (vec![filter("instance-id", &["x"; 201])], "FilterLimitExceeded"),
    ] {
        assert_eq!(code(bench.describe(describe(filters))), expected);
    }
}

#[test]
fn status_shows_running_instances_unless_all_are_asked_for() {
    let mut bench = Bench::new();
    let running = bench.launch_running();
    let stopped = bench.launch_running();
    bench.call(Request::StopInstances(ids(&[&stopped]))).result.expect("a stop");
    bench.seconds(1);
    let mut shown = |include_all_instances| {
        let request =
            DescribeInstanceStatus { include_all_instances, ..DescribeInstanceStatus::default() };
        match bench.call(Request::DescribeInstanceStatus(request)).result {
            Ok(Response::InstanceStatuses(page)) => {
                page.items.into_iter().map(|status| status.instance_id).collect::<BTreeSet<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(shown(false), BTreeSet::from([running.clone()]));
    assert_eq!(shown(true), BTreeSet::from([running, stopped]));
}

#[test]
fn ids_and_page_sizes_have_limits() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    for (max_results, instance_ids, expected) in [
        (Some(4), vec![], "InvalidParameterValue"),
        (Some(1001), vec![], "InvalidParameterValue"),
        (Some(5), vec![id.clone()], "InvalidParameterCombination"),
    ] {
        let page = Page { max_results, next_token: None };
        let request = DescribeInstances { instance_ids, page, ..DescribeInstances::default() };
        assert_eq!(code(bench.describe(request)), expected);
    }
    let too_many =
        DescribeInstanceStatus { instance_ids: vec![id; 101], ..DescribeInstanceStatus::default() };
    let result = bench.call(Request::DescribeInstanceStatus(too_many)).result;
    assert_eq!(code(result), "InvalidParameterValue");
}

proptest! {
    #[test]
    fn a_value_matches_itself_when_escaped(value in any::<String>()) {
        let escaped: String = value.chars().flat_map(|character| ['\\', character]).collect();
        prop_assert!(matches_pattern(&escaped, &value));
        prop_assert!(matches_pattern("*", &value));
    }

    #[test]
    fn matching_never_hangs_and_agrees_with_the_definition(
        pattern in "[ab*?]{0,8}",
        value in "[ab]{0,10}",
    ) {
        fn by_definition(pattern: &[char], value: &[char]) -> bool {
            match pattern.split_first() {
                None => value.is_empty(),
                Some(('*', rest)) => {
                    (0..=value.len()).any(|skipped| by_definition(rest, &value[skipped..]))
                }
                Some(('?', rest)) => !value.is_empty() && by_definition(rest, &value[1..]),
                Some((literal, rest)) => {
                    value.first() == Some(literal) && by_definition(rest, &value[1..])
                }
            }
        }
        let characters = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(
            matches_pattern(&pattern, &value),
            by_definition(&characters(&pattern), &characters(&value))
        );
    }

    #[test]
    fn pages_show_each_instance_once(count in 0_i64..40, size in 5_i64..20) {
        let mut bench = Bench::new();
        if count > 0 {
            let launch =
                RunInstances { min_count: count, max_count: count, ..bench.launch_parameters() };
            bench.try_launch(launch).expect("a launch");
        }
        let mut seen = Vec::new();
        let mut next_token = None;
        loop {
            let page = Page { max_results: Some(size), next_token: next_token.take() };
            let request = DescribeInstances { page, ..DescribeInstances::default() };
            let answer = bench.call(Request::DescribeInstances(request)).result;
            let Ok(Response::Instances(page)) = answer else { panic!("{answer:?}") };
            let instances = page.items.iter().flat_map(|reservation| &reservation.instances);
            let shown: Vec<String> = instances.map(|instance| instance.id.clone()).collect();
            prop_assert!(shown.len() as i64 <= size);
            seen.extend(shown);
            match page.next_token {
                Some(token) => next_token = Some(token),
                None => break,
            }
        }
        let expected: Vec<String> = bench.cloud.instances.keys().cloned().collect();
        prop_assert_eq!(seen, expected);
    }
}
