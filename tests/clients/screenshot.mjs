// Takes the picture of the playground for the README, from a running `fanline demo`.
// Usage: node tests/clients/screenshot.mjs http://localhost:8000/playground docs/playground.png
import { launch, open, response, run } from "./browser.mjs";

const [url, path] = process.argv.slice(2);
const QUERY = `# The viewer's home timeline, with the
# relationship to each author.
query Home {
  viewer {
    user {
      name
      followersCount
    }
    homeTimeline {
      entries(first: 3) {
        nodes {
          ... on Post {
            text
          }
          createdAt
          author {
            login
            relationship {
              state
            }
          }
        }
        pageInfo {
          endCursor
        }
      }
    }
  }
}`;

const browser = await launch();
try {
  const options = { viewport: { width: 1200, height: 760 }, deviceScaleFactor: 1.5 };
  const page = await open(browser, url, options, (error) => console.error(error));
  await page.getByLabel("Hide editor tools").click();
  await page
    .locator(".graphiql-query-editor .CodeMirror")
    .evaluate((element, query) => element.CodeMirror.setValue(query), QUERY);
  await run(page);
  await response(page, '"endCursor"');
  await page.mouse.move(600, 750);
  await page.waitForTimeout(500);
  await page.screenshot({ path });
} finally {
  await browser.close();
}
