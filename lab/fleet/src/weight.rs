//! Weights of the agents' parts of the load. It knows the agents' greetings, and no connection.

use lab_driver::MAX_RESIDUES;

use crate::message::Hello;
use crate::name::Name;

/// Maximum weight.
const MOST_WEIGHT: u32 = 1000;
/// Weight of the fastest agent if all have measured their speed: measurements are no more precise.
const HUNDREDTHS: u32 = 100;

/// Returns the number of an agent's workers.
pub(crate) fn workers(agent: &Hello) -> u32 {
    u32::try_from(agent.cores.len().max(1)).unwrap_or(1)
}

/// Returns the agents' relative weights: from the study or their owners; else from their measured speeds; else from
/// their core counts. Speeds that only some have measured are not comparable with the cores of the others.
pub(crate) fn weigh(agents: &[Hello], by_study: &[(Name, u32)]) -> Vec<u32> {
    let said = |agent: &Hello| {
        let named = by_study.iter().find(|(name, _)| *name == agent.name);
        named.map(|(_, weight)| *weight).or(agent.weight)
    };
    let measured = |agent: &Hello| agent.speed.filter(|_| said(agent).is_none());
    let speeds: Option<Vec<u32>> = agents.iter().map(measured).collect();
    if let Some(speeds) = speeds {
        return as_fast(&speeds);
    }
    let weight = |agent: &Hello| said(agent).unwrap_or_else(|| workers(agent));
    let weights = agents.iter().map(weight);
    weights.map(|weight| weight.clamp(1, MOST_WEIGHT)).collect()
}

/// Gives the fastest a hundred, or the maximum that each can have.
fn as_fast(speeds: &[u32]) -> Vec<u32> {
    let fastest = speeds.iter().copied().max().unwrap_or(1).max(1);
    let room = MAX_RESIDUES / u32::try_from(speeds.len().max(1)).unwrap_or(MAX_RESIDUES);
    let most = f64::from(room.clamp(1, HUNDREDTHS));
    let part = |speed: &u32| (f64::from(*speed) / f64::from(fastest) * most).round();
    speeds
        .iter()
        .map(|speed| (part(speed) as u32).max(1))
        .collect()
}

#[cfg(test)]
mod tests {
    use lab_driver::Part;

    use super::*;
    use crate::conductor::tests::hello;

    /// Of agents with so many cores, what each has measured.
    fn agents(of: &[(usize, Option<u32>)]) -> Vec<Hello> {
        let agent = |(at, (cores, speed)): (usize, &(usize, Option<u32>))| Hello {
            cores: (0..*cores).collect(),
            speed: *speed,
            ..hello(&format!("a{at}"))
        };
        of.iter().enumerate().map(agent).collect()
    }

    #[test]
    fn parts_are_as_measured_where_all_have_measured() {
        let mut three = agents(&[(8, Some(200_000)), (2, Some(100_000)), (4, Some(301))]);
        assert_eq!(weigh(&three, &[]), [100, 50, 1]);
        three[1].speed = None;
        assert_eq!(weigh(&three, &[]), [8, 2, 4], "by cores, all of them");
        three[1].speed = Some(100_000);
        let said = [("a1".parse().unwrap(), 3)];
        assert_eq!(weigh(&three, &said), [8, 3, 4]);
        three[0].weight = Some(5000);
        assert_eq!(weigh(&three, &said), [MOST_WEIGHT, 3, 4]);
    }

    #[test]
    fn parts_of_very_many_can_be_dealt_out() {
        for count in [1, 99, 101, 1000] {
            let speeds: Vec<u32> = (0..count).map(|at| 1000 + at).collect();
            let weights = as_fast(&speeds);
            assert!(Part::by_weights(&weights).is_some(), "{count}: {weights:?}");
        }
        assert_eq!(as_fast(&[0, 0]), [1, 1]);
    }
}
