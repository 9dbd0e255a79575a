"""No confinement at all. It must be asked for by name: nothing then protects the host from the command."""

from longwatch.kernel.errors import ConfigError
from longwatch.sandbox.plan import Plan, check, environment


class NoSandbox:
    """Runs the command as it is, in its folder and with its environment; nothing is hidden and nothing protected."""

    name = "none"
    confines = False
    contained = False
    mend = 'use "bubblewrap"'

    def wrap(self, argv: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return the command line. Every folder must be planned at its own path: nothing can be moved here."""
        check(plan)
        moved = next(
            ((host, inside) for host, inside in (*plan.writable, *plan.readonly) if host != inside), None
        )
        if moved is not None:
            raise ConfigError(
                f"sandbox `none` cannot show {moved[0]} as {moved[1]}; use bubblewrap, or the same path"
            )
        clear = () if plan.hand_on_environment else ("-i",)
        variables = (f"{name}={value}" for name, value in environment(plan, home="/nonexistent").items())
        return ("env", *clear, "-C", str(plan.workdir), *variables, *argv)

    def foundation(self) -> tuple[str, ...]:
        """There is nothing to prove."""
        return ()

    def tidy(self) -> None:
        """Nothing is ever left."""

    def search_path(self) -> str:
        """The host's programs are shown."""
        return ""

    def toolchain(self) -> str:
        """The host's tools are what runs."""
        return ""
