//! What each scheduler is made from, under the scheduler's name. What its children register with stands beside each.

/// [`Eevdf`](super::Eevdf); children: `Weight` or `Requests`.
pub use super::eevdf::Config as Eevdf;
/// [`ExplicitPlan`](super::ExplicitPlan); children: `Process`.
pub use super::explicit_plan::Config as ExplicitPlan;
/// [`FairQueue`](super::FairQueue); children: `Weight` or `WarpedWeight`.
pub use super::fair_queue::Config as ProportionalShare;
/// [`FixedPriority`](super::FixedPriority); children: `Priority`.
pub use super::fixed_priority::Config as FixedPriority;
/// [`Join`](super::Join); one child: `None`.
pub use super::join::Config as Join;
/// [`LaneScheduler`](super::LaneScheduler) over threads with jobs; children: `None`.
pub use super::lane::Config as Lane;
/// [`Limit`](super::Limit); one child: `None`.
pub use super::limit::Config as Limit;
/// [`Lottery`](super::Lottery); children: `Weight`.
pub use super::lottery::Config as Lottery;
/// [`Reservation`](super::Reservation); children: `Reservation`.
pub use super::reservation::Config as Reservation;
/// [`ResourceKernel`](super::ResourceKernel); children: `Reserve` or `None`.
pub use super::resource_kernel::Config as ResourceKernel;
/// [`Rialto`](super::Rialto); children: `Reservation` or `None`.
pub use super::rialto::Config as Rialto;
/// [`RoundRobin`](super::RoundRobin); children: `None`.
pub use super::round_robin::Config as RoundRobin;
/// [`SlowerProcessor`](super::SlowerProcessor): BSS-I, PShED; children: `Rate`.
pub use super::slower_processor::Config as SlowerProcessor;
/// [`Spring`](super::Spring); children: `Reservation` or `None`.
pub use super::spring::Config as Spring;
/// [`StatisticalRateMonotonic`](super::StatisticalRateMonotonic); children: `Reservation`.
pub use super::srms::Config as StatisticalRateMonotonic;
/// [`Stride`](super::Stride); children: `Weight`.
pub use super::stride::Config as Stride;
/// [`SurplusFair`](super::SurplusFair), on all its own VPs; children: `Weight`.
pub use super::surplus_fair::Config as SurplusFair;
/// [`TimeSharing`](super::TimeSharing); children: `Priority` from 0 to 15, or `None`.
pub use super::time_sharing::Config as TimeSharing;
/// [`TotalBandwidth`](super::TotalBandwidth); children: `Reservation`.
pub use super::total_bandwidth::Config as TotalBandwidth;
