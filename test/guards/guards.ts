// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these texts are code that is looked for in files.
/**
 * Guards that keep people and processes from what is not theirs, each with the test that fails without it. `npm run
 * test:guards` takes them out, one at a time, as a simulation does with those of the engine (test/simulation/mutations.ts).
 */
import type { Mutation } from "../simulation/mutations.ts";

/** A guard that no test of its own would notice does not stand here: it has one. */
export type Guard = Mutation & { scenario: string };

const at =
  (file: string, scenario: string) => (name: string, law: string, find: string, replace: string) => ({
    ...{ name, law, file, find, replace, scenario },
  });

const unitAccess = "test/unit/gateway/access.test.ts";
const overHttp = "test/integration/gateway/gateway-security.test.ts";
const rights = "test/integration/gateway/gateway-access.test.ts";
const values = "test/integration/gateway/gateway-values.test.ts";
const oidc = "test/integration/gateway/gateway-oidc.test.ts";
const followed = "test/unit/gateway/events.test.ts";
const capable = "test/simulation/versions/capabilities.test.ts";
const headers = "test/integration/security/header-attacks.test.ts";
const delivered = "test/integration/security/delivery-attacks.test.ts";
const roleAttacks = "test/integration/security/role-attacks.test.ts";
const forbidden = "test/integration/security/forbidden-operations.test.ts";
const tenants = "test/integration/security/tenants.test.ts";
const sets = "test/integration/security/client-sets.test.ts";

const cookies = at("services/gateway/security/cookies.ts", overHttp);
const cookiesOnHttps = at("services/gateway/security/cookies.ts", rights);
const proxies = at("services/gateway/security/proxies.ts", unitAccess);
const guards = at("services/gateway/http/guards.ts", overHttp);
const routesValues = at("services/gateway/http/serve-route.ts", values);
const routes = at("services/gateway/http/serve-route.ts", overHttp);
const app = at("services/gateway/http/app.ts", overHttp);
const appValues = at("services/gateway/http/app.ts", values);
const appRights = at("services/gateway/http/app.ts", rights);
const callStream = at("services/gateway/http/call-stream.ts", values);
const events = at("services/gateway/http/events.ts", followed);
const admission = at("services/gateway/http/admission.ts", rights);
const instances = at("services/gateway/routes/instances.ts", values);
const instancesRights = at("services/gateway/routes/instances.ts", rights);
const shapes = at("services/gateway/security/shapes.ts", values);
const tokens = at("services/gateway/security/tokens.ts", unitAccess);
const login = at("services/gateway/security/oidc.ts", oidc);
const cancels = at("services/worker/activities/running/cancel-notices.ts", capable);
const lane = at("services/orchestrator/lane/lane.ts", capable);
const inbox = at("services/orchestrator/parse-inbox.ts", capable);
const parking = at("services/orchestrator/capabilities/may-park.ts", capable);
const bus = at("shared/bus/nats-bus.ts", headers);
const plain = at("shared/security/server-config.ts", tenants);
const token = at("shared/security/jwt.ts", tenants);

export const accessGuards: readonly Guard[] = [
  // Cookies.
  cookies("cookies are out of reach of scripts", "GATEWAY-3", '    "HttpOnly",\n', ""),
  cookies(
    "cookies do not come along from other sites",
    "GATEWAY-3",
    'sameSite = "Strict" }',
    'sameSite = "Lax" }',
  ),
  cookiesOnHttps("cookies go over https alone", "GATEWAY-3", '...(https ? ["Secure"] : []),', ""),
  cookiesOnHttps(
    "cookies are of this host alone",
    "GATEWAY-3",
    "(https ? `__Host-${name}` : name)",
    "(https ? name : name)",
  ),

  // Rates, and whom they are counted for.
  proxies(
    "only proxies of ours say who calls",
    "GATEWAY-3",
    "if (!this.trusts(peer)) return plainAddress(peer);",
    "",
  ),
  proxies(
    "the caller is the last address that is no proxy",
    "GATEWAY-3",
    "for (const hop of hops.reverse()) {",
    "for (const hop of hops) {",
  ),
  proxies(
    "only proxies of ours say that it is https",
    "GATEWAY-3",
    "return this.trusts(peer) && forwardedProto",
    "return forwardedProto",
  ),
  at("services/gateway/http/guards.ts", rights)(
    "rates are each caller's, not the proxy's",
    "GATEWAY-3",
    "limit.take(origins.addressOf(c))",
    "limit.take(peerOf(c))",
  ),
  guards(
    "wrong tokens are limited",
    "GATEWAY-3",
    "const seconds = options.wrongTokens.take(from);",
    "const seconds = 0;",
  ),
  at("services/gateway/routes/system.ts", overHttp)(
    "log-ins with wrong tokens are limited",
    "GATEWAY-3",
    "const seconds = parts.wrongTokens.take(caller.from);",
    "const seconds = 0;",
  ),
  at("services/gateway/http/oidc-login.ts", oidc)(
    "log-ins by a provider that fail are limited",
    "GATEWAY-3",
    "const seconds = parts.wrongTokens.take(from);",
    "const seconds = 0;",
  ),

  // Whoever may see, act, or do neither.
  routes(
    "a page of another site changes nothing",
    "GATEWAY-3",
    'if (spec.method === "post") requireOwnPage(c);',
    "",
  ),
  routes("read-only is read-only", "GATEWAY-3", "requireWritable(spec, server.readOnly);", ""),
  guards(
    "a role is needed",
    "GATEWAY-3",
    "if (!roleAllows(caller.role, spec.role)) {",
    "if (!caller.role) {",
  ),
  app("names of other hosts are not answered", "GATEWAY-3", "app.use(hostGuard(config.allowedHosts));", ""),
  guards(
    "no scripts but our own",
    "GATEWAY-6",
    'c.header("content-security-policy", contentSecurityPolicy);',
    "",
  ),
  app("a streamed call is no other site's", "GATEWAY-3", "        requireOwnPage(c);\n", ""),
  app(
    "a streamed call needs its role",
    "GATEWAY-3",
    "requireRole(callKey, caller(c))",
    "requireRole(look, caller(c))",
  ),
  app(
    "a streamed call is none in read-only mode",
    "GATEWAY-3",
    "requireWritable(callKey, config.readOnly);",
    "",
  ),

  // Users' values.
  routesValues(
    "answers have shapes for values",
    "GATEWAY-7",
    "hide && !caller.payloads ? hide(answer) : answer",
    "answer",
  ),
  routesValues(
    "what is a value alone is refused",
    "GATEWAY-7",
    "if (spec.valueOnly) requirePayloads(spec, caller);",
    "",
  ),
  routesValues(
    "errors of users' code have shapes for words",
    "GATEWAY-7",
    "spec.runsCode && !caller.payloads ? withoutUsersWords(error) : error",
    "error",
  ),
  instances(
    "downloads are refused",
    "GATEWAY-7",
    'requirePayloads({ id: "getHistory with download" }, caller);',
    "",
  ),
  at("services/gateway/http/instance-stream.ts", values)(
    "streams have shapes for chunks",
    "GATEWAY-7",
    "payloads ? item : { ...item, chunk: shapeOf(item.chunk) }",
    "item",
  ),
  callStream(
    "streamed calls have shapes for values",
    "GATEWAY-7",
    "payloads ? value : shapeOf(value)",
    "value",
  ),
  callStream(
    "streamed calls have shapes for words",
    "GATEWAY-7",
    "payloads ? error : withoutUsersWords(error)",
    "error",
  ),
  at("services/gateway/live/broadcast.ts", values)(
    "live events have shapes for values",
    "GATEWAY-7",
    "if (seat.listener.payloads) this.#give",
    "if (seat.listener) this.#give",
  ),
  at("services/gateway/routes/sessions.ts", values)(
    "sentences about sessions quote no values",
    "GATEWAY-7",
    "if (payloads) return explanation;",
    "if (explanation) return explanation;",
  ),
  instancesRights(
    "lists are not searched by words of errors",
    "GATEWAY-7",
    "withoutErrors: !caller.payloads",
    "withoutErrors: false",
  ),
  shapes(
    "what a holder said of a loss is a value",
    "GATEWAY-7",
    "  [LossDetail, (value) => shapeOf(value)],\n",
    "",
  ),
  at("services/gateway/security/shapes.ts", unitAccess)(
    "a field that no schema names is a value",
    "GATEWAY-7",
    "(fields.has(key) ? fields.get(key) : (unnamed) => shapeOf(unnamed))",
    "fields.get(key)",
  ),

  // The audit.
  routesValues(
    "changes are in the audit first",
    "GATEWAY-2",
    "if (audited) await server.audit.asked(caller, audited);",
    "",
  ),
  appValues(
    "streamed calls are in the audit",
    "GATEWAY-2",
    "if (audited) await parts.audit.asked(who, { action: callKey.id, ...audited });",
    "",
  ),
  at("services/gateway/audit.ts", values)(
    "nothing is done that the audit did not take",
    "GATEWAY-2",
    'if (outcome.kind !== "stored") throw unknownOutcome();',
    "void outcome;",
  ),
  routesValues(
    "reads of values are in the audit",
    "GATEWAY-8",
    "if (reads) await audit.read(input.caller, { action, target: reads(input) });",
    "void reads;",
  ),
  routesValues(
    "reads of lists are in the audit",
    "GATEWAY-8",
    'if (lists !== undefined) await audit.read(input.caller, { action, target: lists }, "list");',
    "void lists;",
  ),
  appValues(
    "reads of streams are in the audit",
    "GATEWAY-8",
    'if (who.payloads) await parts.audit.read(who, { action: "getStream", target: instanceId });',
    "",
  ),
  events(
    "who follows values is in the audit",
    "GATEWAY-8",
    'await source.recordRead(caller, rows.sort().join(","));',
    "rows.sort();",
  ),
  events(
    "without an entry live events have no values",
    "GATEWAY-8",
    "payloads: caller.payloads && !unrecorded,",
    "payloads: caller.payloads,",
  ),
  routesValues(
    "the audit has no words of users' code",
    "GATEWAY-7",
    "spec.runsCode ? auditedWords(error) : wordsOf(error)",
    "wordsOf(error)",
  ),

  // How much is read into memory.
  at("services/gateway/histories.ts", rights)(
    "a history is read up to a limit",
    "GATEWAY-7",
    "      this.#requireRoom(instanceId, bytes);\n    }\n    return {",
    "    }\n    return {",
  ),
  at("services/gateway/histories.ts", values)(
    "big values count in a download",
    "GATEWAY-7",
    "bytes += payload.blob.bytes;",
    "",
  ),
  instances("a page of a stream has an end", "GATEWAY-7", " || bytes >= config.maxHistoryBytes", ""),

  // Tokens and log-ins.
  tokens(
    "API tokens have an end",
    "GATEWAY-9",
    ".filter(({ expiresAt = 0 }) => expiresAt > now)",
    ".filter(() => now)",
  ),
  tokens("cookies of tokens have an end", "GATEWAY-9", "|| Number(expiresAt) <= now", ""),
  at("services/gateway/security/tokens.ts", overHttp)(
    "cookies of tokens are signed",
    "GATEWAY-9",
    "timingSafeEqual(Buffer.from(expected), Buffer.from(signature)) ? identityOf(known) : undefined",
    "identityOf(known)",
  ),
  at("services/gateway/security/issued-tokens.ts", rights)(
    "revoked tokens admit nobody",
    "GATEWAY-9",
    ".filter(({ revokedAt }) => revokedAt === undefined)",
    "",
  ),
  at("services/gateway/security/sealed-cookies.ts", unitAccess)(
    "sealed statements have an end",
    "GATEWAY-9",
    "return expiresAt > now ? value : undefined;",
    "return expiresAt ? value : now;",
  ),
  login("log-ins by a provider have an end", "GATEWAY-9", "now + this.#config.sessionMs)", "now * 2)"),
  login(
    "log-ins under way have an end",
    "GATEWAY-9",
    "to: ownPath(to) }, now + loginMs)",
    "to: ownPath(to) }, now * 2)",
  ),
  login(
    "a log-in's state is its browser's",
    "GATEWAY-9",
    "address, state)",
    "address, oauth.skipStateCheck)",
  ),
  login(
    "after a log-in nobody goes elsewhere",
    "GATEWAY-9",
    'return parsed?.origin === base && to.startsWith("/") ? parsed.pathname + parsed.search : "/";',
    "return parsed ? to : to;",
  ),
  admission(
    "tokens are for their operations",
    "GATEWAY-9",
    "if (scope.operations && !scope.operations.includes(operation))",
    "if (operation === '')",
  ),
  admission(
    "tokens do not find out which ids are taken",
    "GATEWAY-9",
    "if (name === undefined || !scope.orchestrations.includes(name))",
    "if (name !== undefined && !scope.orchestrations.includes(name))",
  ),
  instancesRights(
    "lists are narrowed to a token's orchestrations",
    "GATEWAY-9",
    "names: caller.scope?.orchestrations,",
    "names: undefined,",
  ),
  appRights(
    "streams and events are for tokens of their orchestrations",
    "GATEWAY-9",
    "await requireScope(who.scope, { operation, instanceId }, orchestrationOf);",
    "void [operation, instanceId];",
  ),
  appRights(
    "streamed calls are for tokens of the whole installation",
    "GATEWAY-9",
    "await requireScope(who.scope, { operation: callKey.id }, orchestrationOf);",
    "",
  ),
  events(
    "live events of others are not for tokens of some orchestrations",
    "GATEWAY-9",
    "new Set<Topic>(caller.scope?.orchestrations ? [] : query.data.topics)",
    "new Set<Topic>(query.data.topics)",
  ),

  // Capabilities.
  cancels(
    "a cancel of a running task",
    "C1",
    "taskKey(task) === key && (!task.capability || shownFor(task) === capability)",
    "taskKey(task) === key",
  ),
  cancels(
    "a cancel of a waiting task",
    "C1",
    "shown === undefined ? taskKey(task) : `${taskKey(task)}.${shown}`",
    "shown === '' ? '' : taskKey(task)",
  ),
  lane("a report by the lane", "C1", "|| !this.believes(address.instanceId, report.value)", ""),
  lane(
    "a task given back by the lane",
    "C1",
    'if (doubt) this.#refused("return", doubt, instanceId);',
    'if (doubt && instanceId === "") this.#refused("return", doubt, instanceId);',
  ),
  lane("a task that a worker says it holds", "C1", "return doubt ? [place] : [];", "return [];"),
  lane(
    "a session that a worker says is ready",
    "C1",
    'if (doubt) this.#refused("session", doubt, instanceId);\n    return doubt === undefined;',
    "return doubt === undefined || report !== undefined;",
  ),
  inbox(
    "a report in the inbox",
    "C1",
    "return doubtReport(capabilities, instanceId, message.report);",
    "return undefined;",
  ),
  inbox(
    "what is said of a session: claimed, active, checkpoint, lost",
    "C1",
    "return doubtSessionReport(capabilities, instanceId, message.report);",
    "return undefined;",
  ),
  inbox(
    "a start that names its parent",
    "C1",
    "return capabilities.doubtStart(instanceId, message, headers[inboxHeaders.capability]);",
    "return void headers;",
  ),
  at("services/orchestrator/lane/claim-passes.ts", capable)(
    "a claim passed on",
    "C1",
    'if (why) return runtime.announce({ kind: "capability.refused", what: "claim", why, instanceId });',
    "void [why, runtime, instanceId];",
  ),
  parking(
    "a report that only a newer version can read",
    "C1",
    "return capabilities.doubtTask({ ...address, instanceId }, capability) === undefined;",
    "return true;",
  ),
  parking(
    "what only a newer version can read of a session",
    "C1",
    "return capabilities.doubtSession({ ...address, instanceId }, capability) === undefined;",
    "return true;",
  ),
  parking(
    "a pool's signal that only a newer version can read",
    "C1",
    "return verb.name !== poolSignal;",
    "return true;",
  ),
  at("services/orchestrator/capabilities/stream-checks.ts", capable)(
    "an orchestrator's word on chunks",
    "C1",
    "believed: why === undefined",
    "believed: true",
  ),
  at("shared/sdk/instance/instance-stream.ts", capable)(
    "chunks are shown that an orchestrator believes",
    "C1",
    "if (!(await believes({ execution, of: EventId.parse(of), attempt, run, capability }))) return undefined;",
    "",
  ),
  at("services/worker/activities/running/heartbeats.ts", capable)(
    "details of a heartbeat",
    "C1",
    "if (key === undefined || proof === detailsProof(key, attempt, JSON.stringify(details))) return details;",
    "if (attempt > 0) return details;",
  ),
  at("shared/capabilities/check-reports.ts", capable)(
    "what the engine alone says of a session",
    "C1",
    "isOfEngine ? `engine.${instanceId}` : instanceId",
    "instanceId",
  ),
  at("shared/capabilities/capabilities.ts", "test/unit/capabilities/capabilities.test.ts")(
    "a derived capability is good for one purpose",
    "C1",
    "purpose === undefined ? whole : derivedCapability(whole, purpose)",
    'derivedCapability(whole, purpose ?? "beat")',
  ),
  at("services/worker/sessions/holding/leased-session.ts", capable)(
    "a lease shows a derived capability",
    "C1",
    'derivedCapability(capability, "lost")',
    "capability",
  ),
  at("services/orchestrator/publishing/session-register.ts", capable)(
    "the register of sessions shows a derived capability",
    "C1",
    'derivedCapability(capability, "lost")',
    "capability",
  ),
  at("services/worker/activities/running/task-stream.ts", capable)(
    "a chunk shows a derived capability",
    "C1",
    'derivedCapability(task.capability, "stream")',
    "task.capability",
  ),
  at("services/orchestrator/publishing/task-effects.ts", capable)(
    "a cancel shows a derived capability",
    "C1",
    'derivedCapability(shown, "cancel")',
    "shown",
  ),
  at("shared/leases/heartbeat-keys.ts", capable)(
    "a beat shows a derived capability",
    "C1",
    'derivedCapability(task.capability, "beat")',
    "task.capability",
  ),
  at("shared/sdk/keyed/caller.ts", "test/simulation/sessions/keyed.test.ts")(
    "an answer to a call from outside",
    "C1",
    "waiting?.attempt === shown.attempt && waiting.capability === shown.capability",
    "waiting?.attempt === shown.attempt",
  ),

  // Message ids, answers and deliveries.
  at("services/orchestrator/publishing/publish.ts", capable)(
    "message ids of the engine are keyed",
    "SEC-2",
    "toInbox.test(subject) ? capabilities.ofMessageId(options.msgId) : options.msgId",
    "options.msgId",
  ),
  at("shared/bus/delivery/publish-anew.ts", headers)(
    "a duplicate of another subject is none",
    "SEC-2",
    "(await bus.read(original.stream, original.filter, seq, 1))?.[0]?.seq === seq",
    "seq > 0",
  ),
  at("services/worker/activities/running/task-stream.ts", capable)(
    "message ids of chunks cannot be guessed",
    "SEC-2",
    "-${this.#unique}-${index}",
    "-${index}",
  ),
  at("services/orchestrator/parse-inbox.ts", headers)(
    "an answer of the server is nobody's message",
    "SEC-3",
    "if (isServerAnswer(names, stored))",
    "if (isServerAnswer(names, stored) && instanceId === '')",
  ),
  bus("answers go to inboxes", "SEC-4", "reply: reply && isInbox(reply) ?", "reply: reply ?"),
  at("shared/bus/nats-bus.ts", delivered)(
    "nothing is taken that the server was made to deliver",
    "SEC-8",
    "if (!matches(subject, message.subject) || isStored(headers)) return;",
    "if (!matches(subject, message.subject)) return;",
  ),
  at("shared/bus/nats-bus.ts", delivered)(
    "nothing is taken that was published elsewhere",
    "SEC-8",
    "if (!matches(subject, message.subject) || isStored(headers)) return;",
    "if (isStored(headers)) return;",
  ),
  at("shared/bus/nats/inbox.ts", delivered)(
    "where an answer is awaited cannot be guessed",
    "SEC-9",
    "export const newReply = (): string => random(9);",
    "let replies = 0;\nexport const newReply = (): string => String(replies++);",
  ),

  // Roles, sets and tenants.
  at("shared/security/worker-grants.ts", forbidden)(
    "workers send no cancels",
    "SEC-6",
    '        "{.}lanes.owners.*.*.*",\n        ...lettersOfWorkers',
    '        "{.}lanes.owners.*.*.*",\n        "{.}cancels",\n        ...lettersOfWorkers',
  ),
  at("shared/security/worker-grants.ts", forbidden)(
    "workers send no recordings",
    "SEC-6",
    '        "{.}orchestrations.*.session",\n',
    '        "{.}orchestrations.*.session",\n        "{.}lanes.recordings.*",\n',
  ),
  at("shared/security/roles.ts", roleAttacks)(
    "clients of some orchestrations tell keepers nothing",
    "SEC-6",
    "orchestrations ? keeperSignals.map(",
    "orchestrations?.length === -1 ? keeperSignals.map(",
  ),
  at("shared/security/roles.ts", roleAttacks)(
    "nobody keeps expired leases from the watcher",
    "SEC-6",
    "grants: workerGrants,\n    never: () => ofWatcher,",
    "grants: workerGrants,\n    never: () => [],",
  ),
  at("shared/security/permissions.ts", sets)(
    "sets of clients have inboxes of their own",
    "SEC-6",
    "group === undefined ? `_INBOX_${role}` : `_INBOX_${role}_${group}`",
    "group === '' ? '' : `_INBOX_${role}`",
  ),
  at("services/cli/security/security-file.ts", sets)(
    "a set is of its tenants",
    "TENANT-1",
    "tenants.includes(tenant.name) ?",
    "tenants ?",
  ),
  plain(
    "connections of a tenant, by configuration",
    "TENANT-1",
    "max_connections: ${account.limits.connections}",
    "max_connections: -1",
  ),
  plain(
    "streams of a tenant, by configuration",
    "TENANT-1",
    "max_streams: ${account.limits.streams}",
    "max_streams: -1",
  ),
  plain(
    "disk of a tenant, by configuration",
    "TENANT-1",
    "max_file: ${account.limits.storeBytes}",
    "max_file: -1",
  ),
  token("connections of a tenant, by tokens", "TENANT-1", "conn: limits.connections", "conn: -1"),
  token("streams of a tenant, by tokens", "TENANT-1", "streams: limits.streams", "streams: -1"),
  token("disk of a tenant, by tokens", "TENANT-1", "disk_storage: limits.storeBytes", "disk_storage: -1"),
];
