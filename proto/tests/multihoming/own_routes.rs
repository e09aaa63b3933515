//! Routes of the user's own that answer what no association can do.

use anabranch_proto::policy::{Ask, Choice, PathView, Route, Stays};
use anabranch_proto::{Config, Endpoint, Event, PathId, Policies, PolicySpec};

use crate::loads;
use crate::support::bench::{era, ms};
use crate::support::{Weather, World, at, secs};

/// Names this path for every chunk.
#[derive(Clone, Debug)]
struct Always(PathId);

impl Route for Always {
    fn choose(&self, _: &Ask, _: &[PathView]) -> Choice {
        Choice::Send(self.0)
    }

    fn stays(&self) -> Stays {
        Stays::Always
    }
}

/// Side 0 has one path, and a route that always names path `path`, for what `set` puts it in charge of.
fn one_path(path: u16, set: fn(&mut Config, PolicySpec)) -> World {
    let mut config = era("rfc9260");
    let mut world = World::new([0, 1].map(|side| at(side, 1, &config)), vec![Weather::fair(ms(50))], 1);
    world.keep_log = true;
    let mut policies = Policies::default();
    policies.add_route("always", move |_, _| Ok(Box::new(Always(PathId(path)))));
    set(&mut config, PolicySpec::named("always"));
    world.ends[0] = Endpoint::new(at(0, 1, &config), policies, [7; 32]).expect("a usable configuration");
    world
}

#[test]
fn new_data_for_a_path_that_does_not_exist_waits() {
    for failing in [None, Some(0)] {
        for path in [1, u16::MAX] {
            let mut world = one_path(path, |config, route| config.new_data = route);
            let config = world.ends[0].config().clone();
            let config = config.with(|parameters| parameters.pf_max_retrans = failing);
            world.ends[0].configure(config).expect("it can be used");
            let id = world.connect();
            world.run(secs(1.0));
            world.give(0, id, 5000);
            world.run(secs(100.0));
            assert_eq!(loads(&world).count(), 0);
            world.ends[0].abort(world.now, id, Default::default());
            world.drain(0);
            world.run(secs(200.0));
            assert!(world.events[1].iter().any(|(_, _, event)| matches!(event, Event::Lost(_))));
        }
    }
}

#[test]
fn chunks_to_be_sent_again_on_a_path_that_does_not_exist_wait() {
    let both =
        |config: &mut Config, route: PolicySpec| (config.fast, config.timeout) = (route.clone(), route);
    let mut world = one_path(1, both);
    let id = world.connect();
    world.run(secs(1.0));
    world.lose(1, |chunk| matches!(chunk, anabranch_proto::wire::Chunk::Data(_)));
    (0..8).for_each(|_| world.give(0, id, 1000));
    world.run(secs(100.0));
    assert_eq!(loads(&world).count(), 8, "the lost one is not sent again");
}
