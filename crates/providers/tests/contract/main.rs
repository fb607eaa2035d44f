//! Does a provider keep the contract that the trait's doc comments write down?
//!
//! One suite, run over the simulated cloud of the testbed and over moto, a stand-in that nobody here
//! wrote. A check that a cloud cannot show says so by a capability that the cloud lacks.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

mod console;
mod harness;
mod moto;
mod simulated;
mod suite;

/// Runs each check over each cloud. The simulated cloud is new for each check; moto takes seconds
/// to start, so one serves all of them, each with a cluster of its own.
macro_rules! contract {
    ($($module:ident::$check:ident),+ $(,)?) => {
        mod simulated_cloud {
            $(
                #[tokio::test]
                async fn $check() {
                    crate::suite::$module::$check(&crate::simulated::start().await).await;
                }
            )+
        }

        #[tokio::test]
        async fn moto_keeps_the_contract() {
            let Some(harness) = moto::start().await else { return };
            $(
                println!("{}", stringify!($check));
                suite::$module::$check(&harness).await;
            )+
        }
    };
}

contract! {
    launching::instance_is_tagged_from_its_first_moment,
    launching::identity_tags_cannot_be_overridden,
    launching::same_token_gives_the_same_instance,
    launching::same_token_with_other_parameters_launches_nothing,
    launching::launch_whose_answer_was_lost_is_found_and_not_doubled,
    preparing::prepare_has_no_effect,
    preparing::filters_resolve_to_ids,
    preparing::wrong_configuration_names_the_field_and_launches_nothing,
    preparing::lookup_that_fails_keeps_its_class,
    preparing::many_launches_share_their_lookups,
    reading::list_has_every_page_sorted_and_only_the_cluster,
    reading::list_is_all_or_nothing,
    reading::unknown_id_does_not_hide_others,
    reading::instances_are_found_by_uid_and_by_token,
    reading::addresses_are_looked_up_once_for_all,
    reading::catalog_is_sorted_and_has_sizes,
    acting::terminate_can_be_repeated,
    acting::stop_start_and_reboot_can_be_repeated,
    acting::tags_are_added_and_others_left_alone,
    acting::unknown_id_is_not_found,
    reporting::instances_that_are_well_are_not_reported,
    reporting::failing_checks_are_reported,
    reporting::events_are_reported_and_moved,
    reporting::every_page_is_looked_at_whatever_filters_do,
    fields::every_field_of_a_provider_spec_reaches_the_launch,
    fields::markets_and_reservations_reach_the_launch,
    fields::dual_stack_reaches_the_launch,
    fields::carrier_address_is_asked_for_in_a_wavelength_zone,
    balancing::classic_load_balancer_gets_the_instance_and_loses_it,
    balancing::target_groups_get_the_instance_by_id_or_by_address,
    balancing::missing_load_balancer_is_named_and_needs_no_leaving,
    balancing::one_load_balancer_does_not_keep_from_another,
    hosting::own_host_is_allocated_tagged_and_given_back,
    hosting::same_token_gives_the_same_host,
    hosting::refused_launch_gives_its_host_back,
    hosting::host_of_the_user_is_marked_as_shared_and_never_released,
    queueing::notices_are_received_until_they_are_deleted,
    queueing::missing_queue_is_not_found,
    identifying::role_is_assumed,
    identifying::web_identity_is_exchanged,
    failing::refusals_have_their_class,
    failing::missing_permission_is_named_and_the_rest_goes_on,
    failing::silence_is_transient,
}
