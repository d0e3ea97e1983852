//! Groups of consumers and of suppliers, with filters that all in a group share.

use crate::attached::{FilterAdmin, MappingAdmin, MappingOwner, Owner};
use crate::changes::{OfferChange, SubscriptionChange};
use crate::connected::ConsumerHandle;
use crate::consumer::AdminFilters;
use crate::event::EventType;
use crate::filter::GroupOperator;
use crate::limits::LimitExceeded;
use crate::pool::ThreadPool;
use crate::posting::offer_retained;
use crate::qos::{Level, PropertyName, Qos, QosProblems, QosSettings};
use crate::shared::{About, ObtainInfoMode, Shared};
use crate::stated;
use crate::topology::Changed;
use crate::work::LaneWork;
use std::fmt;
use std::sync::Arc;
use talea_event::TypePattern;
use talea_time::Duration;

macro_rules! admin {
    ($(#[$doc:meta])* $name:ident, $groups:ident, $with:path, $available:path, $told_of:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            pub(crate) shared: Arc<Shared>,
            pub(crate) number: u32,
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("number", &self.number).finish_non_exhaustive()
            }
        }

        impl $name {
            /// The admin of this number, if there is one.
            pub(crate) fn of(shared: &Arc<Shared>, number: u32) -> Option<Self> {
                let mut topology = shared.topology();
                let group = topology.$groups.get_mut(&number).filter(|group| !group.is_destroyed)?;
                group.is_unused = false;
                drop(topology);
                Some($name { shared: Arc::clone(shared), number })
            }

            /// Its number in the channel; 0 is the one that is always there.
            pub fn id(&self) -> u32 {
                self.number
            }

            /// How its filters go with those of its members.
            pub fn operator(&self) -> GroupOperator {
                self.own_filters().operator
            }

            /// Takes it out of its channel with all of its members: none of them has or pushes events any more, and nobody is connected to it
            /// (`destroy`). False if that has been done, or if it is the one that is always there, which stays as long as the channel.
            pub fn destroy(&self) -> bool {
                let mut topology = self.shared.topology();
                let group = topology.$groups.get_mut(&self.number).filter(|_| self.number != 0);
                let was_there = group.is_some_and(|group| !std::mem::replace(&mut group.is_destroyed, true));
                self.shared.show_members(&mut topology);
                drop(topology);
                if was_there {
                    let _together = self.shared.together();
                    self.shared.listen_no_more(self.owner());
                    self.remove_members();
                }
                was_there
            }

            /// Who it is where it is told of something.
            fn owner(&self) -> (u32, About) {
                (self.number, $told_of)
            }

            pub(crate) fn own_filters(&self) -> Arc<AdminFilters> {
                Arc::clone(&self.shared.topology().$groups[&self.number].filters)
            }

            /// The filters for all members, now and later, to add some and to remove them.
            pub fn filters(&self) -> FilterAdmin<'_> {
                FilterAdmin::new(&self.shared, Owner::Admin(self.own_filters()))
            }

            /// The quality of service that members have from now on when they are connected.
            pub fn qos(&self) -> Qos {
                self.shared.topology().$groups[&self.number].qos.clone()
            }

            /// Sets properties of it, all or none.
            ///
            /// # Errors
            /// Every problem.
            pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
                let mut topology = self.shared.topology();
                let group = topology.$groups.get_mut(&self.number).expect("admins stay as long as their channel");
                group.qos = $with(&group.qos, settings, Level::Admin)?;
                Ok(())
            }

            /// Whether these could be set, and what else could then: of each property its name and the values that it may have.
            ///
            /// # Errors
            /// Every problem.
            pub fn validate_qos(
                &self,
                settings: &QosSettings,
            ) -> Result<Vec<(PropertyName, String)>, QosProblems> {
                Ok($available(&$with(&self.qos(), settings, Level::Admin)?, Level::Admin))
            }
        }
    };
}

admin! {
    /// A group of consumers (`ConsumerAdmin`).
    ConsumerAdmin, consumer_admins, Qos::with, Qos::available, About::Offers
}

admin! {
    /// A group of suppliers (`SupplierAdmin`).
    SupplierAdmin, supplier_admins, stated::with, stated::available, About::Subscriptions
}

impl ConsumerAdmin {
    /// The mapping filter that says which priority events have for its members, now and later, where these have none that says it.
    pub fn priority_filter(&self) -> MappingAdmin<'_, i16> {
        MappingAdmin::new(&self.shared, MappingOwner::Admin(self.own_filters()))
    }

    /// The mapping filter that says how long after their push events are worth being delivered to its members, now and later, where these have none that
    /// says it.
    pub fn lifetime_filter(&self) -> MappingAdmin<'_, Duration> {
        MappingAdmin::new(&self.shared, MappingOwner::Admin(self.own_filters()))
    }

    /// The lanes in which its consumers have their events that are connected from now on, unless they have lanes of their own.
    ///
    /// # Errors
    /// Everything that cannot be; nothing has changed.
    pub fn set_thread_pool(&self, pool: ThreadPool) -> Result<(), QosProblems> {
        pool.check()?;
        let mut topology = self.shared.topology();
        let group = topology.consumer_admins.get_mut(&self.number);
        group.expect("admins stay as long as their channel").pool = Some(pool);
        Ok(())
    }

    /// The lanes that it has for the consumer of this name, or its channel.
    pub(crate) fn pool_lanes(&self, consumer: &str) -> Vec<LaneWork> {
        let topology = self.shared.topology();
        let pool = topology.consumer_admins[&self.number].pool.as_ref().or(topology.pool.as_ref());
        pool.map(|pool| pool.lanes_of(consumer)).unwrap_or_default()
    }

    fn remove_members(&self) {
        self.consumers().into_iter().for_each(|number| _ = self.shared.remove_consumer(number));
    }

    /// The consumer of this number, if it is connected and one of these (`get_proxy_supplier`).
    pub fn consumer_of(&self, number: u32) -> Option<ConsumerHandle> {
        ConsumerHandle::find(&self.shared, number, Some(self.number))
    }

    /// What its consumers have subscribed to that do not say so themselves when they are connected.
    pub fn subscriptions(&self) -> Vec<TypePattern> {
        self.shared.topology().consumer_admins[&self.number].patterns.iter().cloned().collect()
    }

    /// All of its consumers have subscribed to these as well, and to those no more (`subscription_change`), each by the rules that
    /// [its own change](ConsumerHandle::subscription_change) has; and those that are connected later without saying what they subscribe to. Suppliers that
    /// want to know are told once of what that comes to for all of them together. Of an admin that is destroyed nothing changes.
    pub fn subscription_change(
        &self,
        added: impl IntoIterator<Item = TypePattern>,
        removed: impl IntoIterator<Item = TypePattern>,
    ) -> Changed {
        let change = SubscriptionChange::new(added, removed);
        let mut topology = self.shared.topology();
        let group = topology.consumer_admins.get_mut(&self.number).filter(|group| !group.is_destroyed);
        let Some(group) = group else { return Changed::default() };
        group.patterns = change.apply(&group.patterns);
        let members = topology.consumers_of(self.number);
        let (changed, touched) = topology.change_subscriptions(&members, &change);
        drop(topology);
        self.shared.tell(About::Subscriptions, &changed);
        touched.iter().for_each(|(consumer, before)| offer_retained(consumer, &self.shared, before));
        changed
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first supplier or loses its last: once for all
    /// consumers of the admin (`offer_change`). It is called until the admin or its channel is destroyed, another one
    /// takes its place, or it panics.
    pub fn on_offer_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.shared.listen(self.owner(), Arc::new(listener));
    }

    /// The types that suppliers have said that they push, if `mode` says so, and whether [`on_offer_change`](Self::on_offer_change) is called from
    /// now on (`obtain_offered_types`).
    pub fn obtain_offered_types(&self, mode: ObtainInfoMode) -> Vec<EventType> {
        self.shared.obtain(self.owner(), mode)
    }

    /// The numbers of its consumers (`push_suppliers`, `pull_suppliers`).
    pub fn consumers(&self) -> Vec<u32> {
        self.shared.topology().consumers_of(self.number)
    }
}

impl SupplierAdmin {
    fn remove_members(&self) {
        self.suppliers().into_iter().for_each(|number| _ = self.shared.remove_supplier(number));
    }

    /// The types that its suppliers offer that do not say so themselves when they are connected.
    pub fn offered_types(&self) -> Vec<EventType> {
        self.shared.topology().supplier_admins[&self.number].types.clone()
    }

    /// All of its suppliers push these types as well, and those no more (`offer_change`), each by the rules that
    /// [its own change](crate::Supplier::offer_change) has; and those that are connected later without saying what they offer. Consumers that want to know
    /// are told once of what that comes to for all of them together. A supplier's first push of a type that it has not offered itself allocates.
    /// Of an admin that is destroyed nothing changes.
    ///
    /// # Errors
    /// One of them, or who is connected later, would have more types than the channel allows; nothing has changed.
    pub fn offer_change(
        &self,
        added: impl IntoIterator<Item = EventType>,
        removed: impl IntoIterator<Item = EventType>,
    ) -> Result<Changed, LimitExceeded> {
        let change = OfferChange::new(added, removed);
        let properties = self.shared.properties();
        let mut topology = self.shared.topology();
        let members = topology.suppliers_of(self.number);
        let Some(group) = topology.supplier_admins.get(&self.number).filter(|group| !group.is_destroyed)
        else {
            return Ok(Changed::default());
        };
        let types = change.apply_to_list(&group.types);
        properties.allow_types(types.len())?;
        for member in &members {
            properties.allow_types(change.apply(&topology.suppliers[member].types).len())?;
        }
        topology.supplier_admins.get_mut(&self.number).expect("it is there").types = types;
        let changed = topology.change_offers(&members, &change);
        drop(topology);
        self.shared.tell(About::Offers, &changed);
        Ok(changed)
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first consumer or loses its last: once for all
    /// suppliers of the admin (`subscription_change`). It is called until the admin or its channel is destroyed, another one
    /// takes its place, or it panics.
    pub fn on_subscription_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.shared.listen(self.owner(), Arc::new(listener));
    }

    /// The types that consumers have subscribed to, if `mode` says so, and whether
    /// [`on_subscription_change`](Self::on_subscription_change) is called from now on (`obtain_subscription_types`).
    pub fn obtain_subscription_types(&self, mode: ObtainInfoMode) -> Vec<EventType> {
        self.shared.obtain(self.owner(), mode)
    }

    /// The numbers of its suppliers (`push_consumers`).
    pub fn suppliers(&self) -> Vec<u32> {
        self.shared.topology().suppliers_of(self.number)
    }
}
