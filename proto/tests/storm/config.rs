//! Configurations of two endpoints, at random: what both must have alike, and what each has for itself.

use anabranch_proto::mechanisms::{HeartbeatAfterTimeout, LossDetection, TailProbe};
use anabranch_proto::rules::FastRetransmissions;
use anabranch_proto::{Config, Duration, LocalAddress, Parameters, PolicySpec, Rules, SharedKey};
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;

use crate::support::{PORT, address};
use crate::world::{below, one_in};

const TOGETHER: &[&str] = &["same", "alternate", "timeout-alternate"];

/// One configuration for each end, with so many addresses.
pub(crate) fn pair(chance: &mut ChaCha8Rng, paths: usize) -> [Config; 2] {
    let wrap = one_in(chance, 3);
    let (tsn, ssn) = (u32::MAX - below(chance, 60) as u32, u16::MAX - below(chance, 4) as u16);
    let (interleaving, authentication, addresses) = (one_in(chance, 3), one_in(chance, 3), one_in(chance, 2));
    [0, 1].map(|side| {
        let mut config = alone(chance);
        let local = |path| LocalAddress { address: address(path, side), prefix: 24 };
        config.addresses = (0..paths).map(local).collect();
        config.port = PORT + side as u16;
        // One end in nine lacks what the other offers.
        config.extensions.interleaving = interleaving && !one_in(chance, 9);
        if authentication {
            config.extensions.authentication = true;
            config.extensions.addresses = addresses;
            config.authenticated_chunks = vec![0, 3, 10];
            config.shared_key = Some(SharedKey { id: 1, secret: Bytes::from_static(b"known to both") });
        }
        config.first_tsn = wrap.then_some(tsn);
        config.first_ssn = if wrap && !interleaving { ssn } else { 0 };
        config
    })
}

fn alone(chance: &mut ChaCha8Rng) -> Config {
    let (_, rules) = Rules::ERAS[below(chance, 4) as usize];
    let retransmit = TOGETHER[below(chance, 3) as usize];
    let mut config = Config {
        rules,
        fast: PolicySpec::named(retransmit),
        timeout: PolicySpec::named(retransmit),
        mtu_discovery: one_in(chance, 5),
        receive_buffer: [1500, 5000, 20_000, 1 << 20][below(chance, 4) as usize],
        cookie_life: Duration::from_secs(3600),
        parameters: Parameters {
            mtu: [576, 600 + below(chance, 900) as u32, 1500, 4000, 9000][below(chance, 5) as usize],
            send_buffer: [None, Some(3000), Some(100_000)][below(chance, 3) as usize],
            rto_initial: Duration::from_millis(300),
            rto_min: Duration::from_millis([50, 250][below(chance, 2) as usize]),
            rto_max: Duration::from_secs(2),
            sack_every: 1 + below(chance, 3) as u32,
            association_max_retrans: 100_000,
            max_init_retransmits: 100_000,
            path_max_retrans: [1, 3, 5][below(chance, 3) as usize],
            pf_max_retrans: one_in(chance, 3).then_some(0),
            heartbeat_interval: one_in(chance, 2).then_some(Duration::from_secs(1)),
            shutdown_guard: None,
            ..Parameters::default()
        },
        ..Config::default()
    };
    config.extensions.partial_reliability = one_in(chance, 2);
    config.extensions.reconfiguration = one_in(chance, 2);
    config.extensions.ecn = one_in(chance, 3);
    config.extensions.zero_checksum = one_in(chance, 4);
    config.extensions.timestamps = one_in(chance, 3);
    if one_in(chance, 4) {
        config.rules.fast_retransmissions = FastRetransmissions::PerRecovery;
        config.mechanisms.heartbeat_after_timeout = HeartbeatAfterTimeout::On;
    }
    if one_in(chance, 3) {
        config.mechanisms.loss_detection = LossDetection::Rack;
    }
    if one_in(chance, 3) {
        config.mechanisms.tail_probe = TailProbe::On;
    }
    config
}
