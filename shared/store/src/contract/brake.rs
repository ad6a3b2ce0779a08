//! The brake.

use super::{Broken, Case};
use crate::brake::BrakeTarget;
use futures::future::join_all;

/// A brake is in force until it is lifted, also if many operators change it together.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_brake_is_in_force_until_it_is_lifted(case: &Case) -> Result<(), Broken> {
    let (brakes, sample) = (case.brakes(), &case.sample);
    let tenants = [&sample.owner.tenant, &sample.stranger.tenant];
    let targets = tenants.map(|tenant| BrakeTarget::Tenant(tenant.clone()));
    for is_set in [true, true, false, false] {
        let changes = targets.iter();
        let changes = changes.map(|target| brakes.change(target, is_set, sample.now));
        for change in join_all(changes).await {
            change?;
        }
        let brake = brakes.read().await?;
        for tenant in tenants {
            assert_eq!(brake.refusal(tenant, None).is_some(), is_set, "{tenant}");
        }
    }
    Ok(())
}
