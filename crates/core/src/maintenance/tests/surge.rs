//! Does a pool get back to its size, whoever else changes it meanwhile?

use proptest::prelude::*;

use crate::maintenance::surge::{Mark, Resize};

#[test]
fn mark_survives_as_text_and_nonsense_is_none() {
    let Resize { replicas, mark } = Mark::default().grown(3, "u1");
    assert_eq!(replicas, 4);
    let text = mark.unwrap().to_string();
    assert_eq!(text, "size=4;for=u1");
    let read = Mark::read(Some(&text));
    assert!(read.is_for("u1"));
    assert_eq!(read.count(), 1);
    for text in [None, Some(""), Some("size=x;for=u1"), Some("for=u1"), Some("size=4")] {
        assert_eq!(Mark::read(text), Mark::default(), "{text:?}");
    }
}

#[test]
fn repeating_either_step_changes_nothing() {
    let grown = Mark::default().grown(3, "u1");
    let mark = grown.mark.unwrap();
    assert_eq!(mark.grown(4, "u1"), Resize { replicas: 4, mark: Some(mark.clone()) });
    assert_eq!(mark.shrunk(4, "u1"), Resize { replicas: 3, mark: None });
    assert_eq!(Mark::default().shrunk(3, "u1"), Resize { replicas: 3, mark: None });
}

#[test]
fn what_others_took_away_is_not_taken_twice() {
    let mark = Mark::default().grown(3, "u1").mark.unwrap();
    assert_eq!(mark.shrunk(3, "u1").replicas, 3, "an autoscaler removed the surplus");
    assert_eq!(mark.shrunk(6, "u1").replicas, 5, "a person made it larger by two");
}

#[derive(Clone, Debug)]
enum Step {
    Grow(u8),
    Shrink(u8),
    Others(i32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Step::Grow),
        3 => (0..4_u8).prop_map(Step::Shrink),
        1 => (-2..3_i32).prop_map(Step::Others),
    ]
}

proptest! {
    /// The size that others want is what it was, with everything that they changed. A surplus machine
    /// that they took away themselves is the only thing that may be left out of it.
    #[test]
    fn a_pool_never_gets_smaller_than_others_want_it(
        base in 1..6_i32,
        steps in proptest::collection::vec(step(), 0..30),
    ) {
        let (mut wanted, mut replicas, mut mark) = (base, base, Mark::default());
        for step in steps {
            match step {
                Step::Grow(uid) => {
                    let resize = mark.grown(replicas, &format!("u{uid}"));
                    replicas = resize.replicas;
                    mark = resize.mark.unwrap_or_default();
                }
                Step::Shrink(uid) => {
                    let resize = mark.shrunk(replicas, &format!("u{uid}"));
                    replicas = resize.replicas;
                    mark = resize.mark.unwrap_or_default();
                }
                Step::Others(by) => {
                    let by = by.max(-replicas);
                    wanted += by;
                    replicas += by;
                }
            }
            mark = Mark::read(Some(&mark.to_string()));
        }
        for uid in 0..4 {
            let resize = mark.shrunk(replicas, &format!("u{uid}"));
            replicas = resize.replicas;
            mark = resize.mark.unwrap_or_default();
        }
        prop_assert!(replicas >= wanted.max(0), "{replicas} of {wanted}");
        prop_assert_eq!(mark, Mark::default());
    }

    #[test]
    fn without_others_the_size_is_what_it_was(
        base in 1..6_i32,
        uids in proptest::collection::vec(0..6_u8, 0..20),
    ) {
        let (mut replicas, mut mark) = (base, Mark::default());
        for uid in &uids {
            let uid = format!("u{uid}");
            let resize =
                if mark.is_for(&uid) { mark.shrunk(replicas, &uid) } else { mark.grown(replicas, &uid) };
            replicas = resize.replicas;
            mark = resize.mark.unwrap_or_default();
            prop_assert_eq!(replicas, base + i32::try_from(mark.count()).unwrap());
        }
    }
}
