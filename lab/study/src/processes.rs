//! Processes of one system in one cell: which of them share a machine, and how their texts refer to each other.

use lab_language::host::HostSpec;
use lab_language::{CellError, TextError};

use crate::command::{
    ADDRESS, CommandTemplate, OF_ADDRESS, OF_PORT, PORT, SECRET, SECRET_FILE, address_of, port_of,
};
use crate::model::{Cell, Level};
use crate::system::PartSpec;

/// Processes that share a machine, one after the other.
struct Group<'t> {
    host: HostSpec,
    members: Vec<(&'t str, &'t CommandTemplate)>,
}

impl CommandTemplate {
    /// Returns the commands of `cell` by machine: the parts on other machines in order, and the one that users connect
    /// to. `around` holds the system's settings for its machine.
    pub(crate) fn machines(
        &self,
        cell: &Cell,
        around: HostSpec,
    ) -> Result<(Vec<PartSpec>, PartSpec), CellError> {
        let groups = self.groups(cell, around)?;
        let specs = (0..groups.len()).map(|at| part(&groups, at, cell));
        let mut parts = specs.collect::<Result<Vec<_>, _>>()?;
        let last = parts.pop().expect("a system has a process");
        Ok((parts, last))
    }

    fn groups(&self, cell: &Cell, around: HostSpec) -> Result<Vec<Group<'_>>, CellError> {
        let before = self.before.iter();
        let before = before.map(|(name, template)| (name.as_str(), template));
        let own = self.name.as_deref().unwrap_or_default();
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (name, template) in before.chain([(own, self)]) {
            let mut host = template.host.spec(cell)?;
            host.on = host.on.or_else(|| around.on.clone());
            let has = groups.iter().position(|group| group.host.on == host.on);
            match has {
                Some(at) if at + 1 == groups.len() => {
                    let group = &mut groups[at];
                    template.join(&mut group.host, host, cell)?;
                    group.members.push((name, template));
                }
                Some(_) => {
                    return Err(template.refused(
                        cell,
                        "its machine has another process, and one of another machine starts between them",
                        "write the processes of a machine one after the other",
                    ));
                }
                None => groups.push(Group {
                    host,
                    members: vec![(name, template)],
                }),
            }
        }
        // The system's machine settings apply to the machine that it names, or else to the one that users connect to.
        let meant = groups
            .iter_mut()
            .rev()
            .find(|group| around.on.is_none() || group.host.on == around.on);
        let Some(meant) = meant else {
            return Err(self.refused(
                cell,
                "the system is `on` a machine on which it has no process",
                "leave that `on` out, or one of the processes'",
            ));
        };
        self.join(&mut meant.host, around, cell)?;
        let here = groups.iter().rev().skip(1);
        if let Some(group) = here.into_iter().find(|group| group.host.on.is_none()) {
            return Err(group.members[0].1.refused(
                cell,
                "it runs on this machine, and one that starts after it on another, which does not reach it",
                "say which machine it is `on`, or start it after the others",
            ));
        }
        Ok(groups)
    }

    /// Merges the machine settings of a process, or of the system.
    fn join(&self, host: &mut HostSpec, more: HostSpec, cell: &Cell) -> Result<(), CellError> {
        let is_set = |path: &String| host.kernel.iter().any(|setting| setting.path == *path);
        let again = more.kernel.iter().any(|setting| is_set(&setting.path));
        let both = |one: bool, other: bool| one && other;
        let stores = |host: &HostSpec| host.storage.is_some() || host.filesystem.is_some();
        if again
            || both(host.cpus.is_some(), more.cpus.is_some())
            || both(stores(host), stores(&more))
        {
            return Err(self.refused(
                cell,
                "`kernel`, `cpus`, or `storage` of its machine is said twice",
                "say it at one of the processes there",
            ));
        }
        host.kernel.extend(more.kernel);
        host.cpus = host.cpus.take().or(more.cpus);
        host.storage = host.storage.take().or(more.storage);
        host.filesystem = host.filesystem.take().or(more.filesystem);
        Ok(())
    }

    /// Returns the error for an invalid location.
    fn refused(&self, cell: &Cell, message: &str, help: &str) -> CellError {
        let says = self.host.on.as_ref().unwrap_or(&self.start[0]);
        let wrong = |text: &str| Err(TextError::new(message, 0..text.len()).help(help));
        let never: Result<std::convert::Infallible, CellError> = says.value(cell, wrong);
        match never {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }
}

/// The processes of one machine.
fn part(groups: &[Group<'_>], at: usize, cell: &Cell) -> Result<PartSpec, CellError> {
    let group = &groups[at];
    let (name, last) = *group.members.last().expect("a machine has a process");
    let cell = &known(groups, at, name, cell);
    let before = group.members[..group.members.len() - 1].iter();
    let before = before.map(|(name, template)| {
        if !template.reset.is_empty() {
            return Err(template.refused(
                cell,
                "`reset` is about all processes of a machine",
                "write it at the last of them",
            ));
        }
        // Its own port is `port` to itself.
        let spec = template.spec_at(cell, &port_of(name))?;
        Ok(((*name).to_owned(), spec))
    });
    let before = before.collect::<Result<_, CellError>>()?;
    let mut spec = last.spec_at(cell, PORT)?;
    spec.name.clone_from(&last.name);
    if groups.len() > 1 {
        spec.name = Some(name.to_owned());
    }
    spec.before = before;
    let is_last = at + 1 == groups.len();
    if !is_last && (spec.names(SECRET) || spec.names(SECRET_FILE)) {
        return Err(last.refused(
            cell,
            "each machine makes a `secret` of its own, and users are told that of the last",
            "write a text of your own where several machines are to know it",
        ));
    }
    let later = groups[at + 1..].iter().flat_map(|group| &group.members);
    for (later, _) in later {
        if spec.names(&port_of(later)) || spec.names(&address_of(later)) {
            return Err(last.refused(
                cell,
                &format!(
                    "on its machine `{later}` is named, which is on another one and starts later"
                ),
                &format!("write `{later}` before it"),
            ));
        }
    }
    let host = group.host.clone();
    Ok(PartSpec { spec, host })
}

/// Returns the cell with placeholders for ports and addresses in a machine's texts; a trial fills them in.
fn known(groups: &[Group<'_>], at: usize, last: &str, cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    for (of, group) in groups.iter().enumerate() {
        for (name, _) in group.members.iter().filter(|(name, _)| !name.is_empty()) {
            let port = match *name == last {
                true => PORT.to_owned(),
                false => port_of(name),
            };
            let address = match of == at {
                true => ADDRESS.to_owned(),
                false => address_of(name),
            };
            cell.insert(format!("{name}{OF_PORT}"), Level::Text(port));
            cell.insert(format!("{name}{OF_ADDRESS}"), Level::Text(address));
        }
    }
    cell
}
