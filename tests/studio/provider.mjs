// A real OpenID provider for the tests: node provider.mjs PORT CLIENT SECRET REDIRECT_URI
// Whoever types a name is let in; the name tells whether the address is verified.
import { Provider } from "oidc-provider";

const [port, client, secret, redirect] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: client, client_secret: secret, redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  cookies: { keys: ["only for tests"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id.replace("unverified-", "").replace("second-", "")}@example.org`,
      email_verified: !id.startsWith("unverified-"),
      name: `Name of ${id}`,
    }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
