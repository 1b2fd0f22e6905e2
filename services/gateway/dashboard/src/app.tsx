/** The dashboard's frame: navigation, the page for the current address, and the connection's state. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { me, unreached } from "./api.ts";
import { plural } from "./format.ts";
import { busAway, line, overview, useLive } from "./live.ts";
import { ImportPage } from "./pages/import.tsx";
import { LimitsPage } from "./pages/limits.tsx";
import { LoginPage } from "./pages/login.tsx";
import { OrchestrationPage } from "./pages/orchestration/orchestration.tsx";
import { OrchestrationsPage } from "./pages/orchestrations/orchestrations.tsx";
import { OverviewPage } from "./pages/overview/overview.tsx";
import { QueuesPage } from "./pages/queues.tsx";
import { SchedulesPage } from "./pages/schedules.tsx";
import { SessionPage } from "./pages/sessions/session.tsx";
import { SessionsPage } from "./pages/sessions/sessions.tsx";
import { StartPage } from "./pages/start.tsx";
import { WaitingPage } from "./pages/waiting.tsx";
import { WorkersPage } from "./pages/workers.tsx";
import { Empty } from "./parts/basics.tsx";
import { DialogHost } from "./parts/dialog.tsx";
import { Icon } from "./parts/icon.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { path } from "./router.ts";
import { type Pattern, routeOf, tabTitle } from "./routes.ts";
import { nextTheme, theme } from "./theme.ts";

const pages: Readonly<Record<Pattern, (params: Record<string, string>) => ComponentChildren>> = {
  "/": () => <OverviewPage />,
  "/orchestrations": () => <OrchestrationsPage />,
  "/orchestrations/:id": ({ id = "" }) => <OrchestrationPage key={id} id={id} />,
  "/sessions": () => <SessionsPage />,
  "/sessions/:id": ({ id = "" }) => <SessionPage key={id} id={id} />,
  "/workers": () => <WorkersPage />,
  "/workers/:id": ({ id = "" }) => <WorkersPage key={id} only={id} />,
  "/schedules": () => <SchedulesPage />,
  "/schedules/:id": ({ id = "" }) => <SchedulesPage key={id} only={id} />,
  "/limits": () => <LimitsPage />,
  "/queues": () => <QueuesPage />,
  "/start": () => <StartPage />,
  "/import": () => <ImportPage />,
};

const menu = [
  ["/", "Overview", "overview"],
  ["/orchestrations", "Orchestrations", "orchestrations"],
  ["/sessions", "Sessions", "sessions"],
  ["/workers", "Workers", "workers"],
  ["/schedules", "Schedules", "schedules"],
  ["/limits", "Limits", "limits"],
  ["/queues", "Queues", "queues"],
  ["/start", "Start", "start"],
  ["/import", "Import", "import"],
] as const;

export function App() {
  const found = routeOf(path.value);
  const here =
    me.value === undefined
      ? tabTitle()
      : me.value === null
        ? tabTitle("Log in")
        : (found?.title ?? tabTitle("Not found"));
  useEffect(() => {
    document.title = here;
  }, [here]);
  if (me.value === undefined) {
    return unreached.value ? <WaitingPage why={unreached.value} /> : <div class="splash" aria-busy="true" />;
  }
  if (me.value === null) return <LoginPage />;
  return <Shell page={found ? pages[found.pattern](found.params) : <NotFound />} />;
}

function Shell({ page }: { page: ComponentChildren }) {
  useLive({}, []);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Sidebar />
      <div class="content">
        <Banner />
        <main id="main" tabIndex={-1}>
          {page}
        </main>
      </div>
      <DialogHost />
      <Toasts />
    </div>
  );
}

function NotFound() {
  return (
    <>
      <h1>Not found</h1>
      <Empty title="There is nothing here">
        <a href="/">To the overview</a>
      </Empty>
    </>
  );
}

function Sidebar() {
  const troubles = overview.value?.troubles.length ?? 0;
  const section = `/${path.value.split("/")[1] ?? ""}`;
  // On a phone the pages fold behind a button; on a desk the button is not shown.
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path.value]);
  return (
    <header class="sidebar">
      <a class="brand" href="/">
        <img src="/icon.svg" alt="" width={26} height={26} />
        <span>Holdfast</span>
      </a>
      <button
        type="button"
        class="button menu-button"
        aria-expanded={open}
        aria-controls="pages"
        onClick={() => setOpen(!open)}
      >
        Menu{" "}
        {troubles > 0 && (
          <span class="nav-count" title={`${plural(troubles, "thing")} to look at on the overview`}>
            {troubles}
          </span>
        )}
      </button>
      <nav id="pages" aria-label="Pages" class={open ? "open" : ""}>
        {menu.map(([href, name, icon]) => (
          <a key={href} href={href} class="nav" aria-current={href === section ? "page" : undefined}>
            <Icon name={icon} />
            <span class="nav-name">{name}</span>
            {href === "/" && troubles > 0 && (
              <span class="nav-count" title={`${plural(troubles, "thing")} to look at`}>
                {troubles}
              </span>
            )}
          </a>
        ))}
      </nav>
      <div class="sidebar-foot">
        <button
          type="button"
          class="button small theme"
          onClick={nextTheme}
          title="Light, dark, or as the system has it"
        >
          <Icon name={theme.value} size={15} />
          <span class="theme-name">Theme: {theme.value}</span>
        </button>
        <p class="who">
          {me.value?.tokensRequired ? `${me.value.name} (${me.value.role})` : "local"}
          {me.value?.readOnly && <span class="badge badge-parked">read-only</span>}
        </p>
        <p class="muted version">v{me.value?.version}</p>
      </div>
    </header>
  );
}

function Banner() {
  if (line.value === "broken") {
    return (
      <div class="banner error" role="alert">
        The gateway cannot be reached. What you see may be out of date; this page connects again by itself.
      </div>
    );
  }
  if (busAway.value) {
    return (
      <div class="banner error" role="alert">
        {overview.value?.troubles[0]?.message ?? "NATS is away."} Orchestrations go on when it is back.
      </div>
    );
  }
  return null;
}
