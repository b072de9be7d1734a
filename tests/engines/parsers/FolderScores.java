import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads names of folders from standard input; writes the scores of each one's rows, or why its model is refused. */
abstract class FolderScores {
    interface Model {
        /** The score of a row; a value that is NaN is absent. */
        Number score(Map<String, Float> row) throws Exception;
    }

    abstract Model read(Path folder) throws Exception;

    void run() throws IOException {
        var folders = new BufferedReader(new InputStreamReader(System.in));
        for (String folder = folders.readLine(); folder != null; folder = folders.readLine()) {
            Path path = Path.of(folder);
            String answer;
            try {
                answer = scores(read(path), Files.readAllLines(path.resolve("rows.tsv")));
            } catch (Exception | StackOverflowError error) {
                answer = "refused: " + messages(error);
            }
            Files.writeString(path.resolve("answer.txt"), answer);
            System.out.println("answered");
        }
    }

    private static String scores(Model model, List<String> lines) throws Exception {
        String[] names = lines.get(0).split("\t");
        var scores = new StringBuilder();
        for (String line : lines.subList(1, lines.size())) {
            String[] values = line.split("\t");
            Map<String, Float> row = new LinkedHashMap<>();
            for (int i = 0; i < names.length; i++) {
                row.put(names[i], Float.valueOf(values[i]));
            }
            scores.append(model.score(row)).append('\n');
        }
        return scores.toString();
    }

    private static String messages(Throwable error) {
        return error + (error.getCause() == null ? "" : ": " + messages(error.getCause()));
    }
}
