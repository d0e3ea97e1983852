//! Groups of consumers and of suppliers, with filters that all in a group share.

use crate::attached::{FilterAdmin, MappingAdmin, MappingOwner, Owner};
use crate::consumer::AdminFilters;
use crate::filter::GroupOperator;
use crate::pool::ThreadPool;
use crate::posting::disconnect;
use crate::qos::{Level, Qos, QosProblems, QosSettings};
use crate::shared::Shared;
use crate::stated;
use crate::work::LaneWork;
use std::fmt;
use std::sync::Arc;
use talea_time::Duration;

macro_rules! admin {
    ($(#[$doc:meta])* $name:ident, $groups:ident, $with:path) => {
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
                drop(topology);
                if was_there {
                    self.remove_members();
                }
                was_there
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
        }
    };
}

admin! {
    /// A group of consumers (`ConsumerAdmin`).
    ConsumerAdmin, consumer_admins, Qos::with
}

admin! {
    /// A group of suppliers (`SupplierAdmin`).
    SupplierAdmin, supplier_admins, stated::with
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
        self.consumers().into_iter().for_each(|number| _ = disconnect(&self.shared, number));
    }

    /// The numbers of its consumers (`push_suppliers`, `pull_suppliers`).
    pub fn consumers(&self) -> Vec<u32> {
        let topology = self.shared.topology();
        let own = topology.consumers.iter().filter(|(_, consumer)| consumer.admin == self.number);
        own.map(|(number, _)| *number).collect()
    }
}

impl SupplierAdmin {
    fn remove_members(&self) {
        self.suppliers().into_iter().for_each(|number| _ = self.shared.remove_supplier(number));
    }

    /// The numbers of its suppliers (`push_consumers`).
    pub fn suppliers(&self) -> Vec<u32> {
        let topology = self.shared.topology();
        let own = topology.suppliers.iter().filter(|(_, supplier)| supplier.admin == self.number);
        own.map(|(number, _)| *number).collect()
    }
}
