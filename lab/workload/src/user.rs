//! The initial variables of a user, as its workload defines them.

use crate::data::Each;
use crate::model::Workload;
use crate::render_error::RenderError;
use crate::scope::{Slot, User, UserScope};

impl Workload {
    /// The initial variables of a user: its `user:` variables are evaluated in file order, then `extra` (values from
    /// provisioning, such as a password) replace variables of the same name.
    ///
    /// # Errors
    /// When a `user:` template fails, or `extra` names a variable that the workload doesn't have.
    pub fn scope(&self, user: User, extra: &[(String, String)]) -> Result<UserScope, RenderError> {
        let mut scope = UserScope::unset(&self.variables, (&self.inputs, self.data.as_ref()), user);
        scope.take_row(Each::User, u64::from(scope.index()));
        for (name, value) in extra {
            let slot = slot(&scope, name)?;
            scope.set_text(slot, value);
        }
        let mut text = String::new();
        for (name, template) in &self.user {
            let slot = slot(&scope, name)?;
            if extra.iter().any(|(given, _)| given == name) {
                continue;
            }
            text.clear();
            template.render(&mut scope, &mut text)?;
            scope.set_text(slot, &text);
        }
        Ok(scope)
    }
}

fn slot(scope: &UserScope, name: &str) -> Result<Slot, RenderError> {
    scope.slot(name).ok_or_else(|| RenderError::Unknown {
        variable: name.to_owned(),
    })
}
